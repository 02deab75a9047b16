import { z } from 'zod';
import type { HoldfastOptions } from './holdfast-options.js';
import { isConnectionString, NO_CONNECTION_STRING } from './drivers/open-driver.js';
import { isDataSource } from './engine/data-source.js';
import { isStorable } from './engine/check-text.js';
import { describeIssues } from './engine/describe-issues.js';
import { checkOutboxSettings, type RelaySettings } from './effects/outbox-settings.js';
import { parseDuration } from './engine/duration.js';
import { isSourceVersion } from './engine/source-version.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import { SHUTDOWN_SIGNALS } from './shutdown-signals.js';
import { DEFAULT_SCHEMA } from './store/postgres/migrate-schema-name.js';

export const DEFAULT_LEASE_MS = 15_000;
const LEAST_LEASE_MS = 100;
export const DEFAULT_POLL_MS = 1_000;
export const DEFAULT_MAX_CONCURRENT = 1_000;
export const DEFAULT_SUSPEND_AFTER_MS = 5_000;
export const DEFAULT_LAUNCH_TIMEOUT_MS = 30_000;
export const DEFAULT_SHUTDOWN_TIMEOUT_MS = 10_000;

const duration = z.custom<number | string>(
  (value) => typeof value === 'number' || typeof value === 'string',
  "must be milliseconds as a number, or a text such as '10s'",
);

const callable = z.custom<(...args: never[]) => unknown>((value) => typeof value === 'function', 'must be a function');

/** Checked further where it is used. */
const definition = (otherwise: string) =>
  z.custom<object>((value) => typeof value === 'object' && value !== null, otherwise);

const storable = (text: z.ZodString) => text.refine(isStorable, 'must not contain NUL or half of a surrogate pair');

/** What needs no further knowledge to be checked; schema names, drivers and workflows are checked where they are used. */
export const optionsSchema = z.strictObject({
  workflows: z.array(
    z.custom<object>(
      (value) => (typeof value === 'object' && value !== null) || typeof value === 'function',
      'must be a class, a function made by defineWorkflow, or { name, instance }',
    ),
  ),
  queues: z.array(definition('must be the definition of a queue: { name, … }')).optional(),
  schedules: z.array(definition('must be the definition of a schedule: { name, workflow, cron, … }')).optional(),
  outbox: definition('must be an object: { handlers: { [topic]: handler } }').optional(),
  database: z
    .custom((value) => typeof value === 'string' || typeof value === 'object' || typeof value === 'function')
    .refine((value) => typeof value !== 'string' || isConnectionString(value), NO_CONNECTION_STRING)
    .optional(),
  listenDatabase: z.string().refine(isConnectionString, NO_CONNECTION_STRING).optional(),
  maxConnections: z.int().min(2).max(1_000).optional(),
  dataSources: z.array(z.custom<object>(isDataSource, 'must be what defineDataSource returned')).optional(),
  schema: z.string().optional(),
  migrate: z.boolean().optional(),
  executorId: storable(z.string().min(1).max(200)).optional(),
  appVersion: z
    .union([
      storable(z.string().max(200)),
      z.custom(isSourceVersion, 'must be a text, or what sourceVersion() returns'),
    ])
    .optional(),
  lease: duration.optional(),
  pollInterval: duration.optional(),
  maxConcurrent: z.int().min(1).max(1_000_000).optional(),
  suspendAfter: duration.optional(),
  notifications: z.boolean().optional(),
  codecs: z.array(z.looseObject({ name: z.string().min(1), encode: callable, decode: callable })).optional(),
  errors: z
    .array(
      z.union([callable, z.tuple([z.string().min(1), callable])], 'must be an error class, or its name and the class'),
    )
    .optional(),
  maxValueBytes: z
    .int()
    .min(1_024)
    .max(256 * 1024 * 1024)
    .optional(),
  logger: z.looseObject({ debug: callable, info: callable, warn: callable, error: callable }).optional(),
  launchTimeout: duration.optional(),
  signal: z.custom((value) => value instanceof AbortSignal).optional(),
  shutdownTimeout: duration.optional(),
  shutdownOn: z.array(z.enum(SHUTDOWN_SIGNALS)).optional(),
  allowAsynchronousCommit: z.boolean().optional(),
  hotReloadKey: z.string().min(1).optional(),
});

/** Options with defaults filled in; durations in milliseconds. */
export interface LaunchSettings {
  readonly schema: string;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly maxConcurrent: number;
  readonly suspendAfterMs: number;
  readonly launchTimeoutMs: number;
  readonly shutdownTimeoutMs: number;
  readonly outbox: RelaySettings;
}

/** @throws InvalidArgumentError naming every option that is wrong. */
export function checkOptions(options: HoldfastOptions): LaunchSettings {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success) {
    throw new InvalidArgumentError(`The options of launch are not right: ${describeIssues(checked.error)}`, {
      cause: checked.error,
    });
  }
  const leaseMs = parseDuration(options.lease ?? DEFAULT_LEASE_MS, 'lease');
  if (leaseMs < LEAST_LEASE_MS) {
    throw new InvalidArgumentError(
      `lease must be at least ${String(LEAST_LEASE_MS)} ms: heartbeats need time to arrive.`,
    );
  }
  return {
    schema: options.schema ?? DEFAULT_SCHEMA,
    leaseMs,
    pollMs: Math.max(1, parseDuration(options.pollInterval ?? DEFAULT_POLL_MS, 'pollInterval')),
    maxConcurrent: options.maxConcurrent ?? DEFAULT_MAX_CONCURRENT,
    suspendAfterMs: parseDuration(options.suspendAfter ?? DEFAULT_SUSPEND_AFTER_MS, 'suspendAfter'),
    launchTimeoutMs: parseDuration(options.launchTimeout ?? DEFAULT_LAUNCH_TIMEOUT_MS, 'launchTimeout'),
    shutdownTimeoutMs: parseDuration(options.shutdownTimeout ?? DEFAULT_SHUTDOWN_TIMEOUT_MS, 'shutdownTimeout'),
    outbox: checkOutboxSettings(options.outbox ?? { handlers: {} }),
  };
}
