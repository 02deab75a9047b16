import { describeIssues } from './engine/describe-issues.js';
import { parseDuration } from './engine/duration.js';
import { InvalidArgumentError } from './errors/admin-errors.js';
import type { HoldfastOptions } from './holdfast-options.js';
import { DEFAULT_LAUNCH_TIMEOUT_MS, DEFAULT_POLL_MS, optionsSchema } from './launch-options.js';
import { DEFAULT_SCHEMA } from './store/postgres/migrate-schema-name.js';

/** What `HoldfastClient.connect` takes; each as for `Holdfast.launch`, and all with a default. */
export interface ClientOptions extends Pick<
  HoldfastOptions,
  | 'database'
  | 'listenDatabase'
  | 'maxConnections'
  | 'schema'
  | 'pollInterval'
  | 'notifications'
  | 'codecs'
  | 'errors'
  | 'maxValueBytes'
  | 'logger'
  | 'launchTimeout'
  | 'signal'
  | 'allowAsynchronousCommit'
> {
  /** Default false: the schema is only checked. */
  readonly migrate?: boolean;
}

export interface ClientSettings {
  readonly schema: string;
  readonly pollMs: number;
  readonly launchTimeoutMs: number;
}

const clientOptionsSchema = optionsSchema.pick({
  database: true,
  listenDatabase: true,
  maxConnections: true,
  schema: true,
  migrate: true,
  pollInterval: true,
  notifications: true,
  codecs: true,
  errors: true,
  maxValueBytes: true,
  logger: true,
  launchTimeout: true,
  signal: true,
  allowAsynchronousCommit: true,
});

/** @throws InvalidArgumentError naming every option that is wrong. */
export function checkClientOptions(options: ClientOptions): ClientSettings {
  const checked = clientOptionsSchema.safeParse(options);
  if (!checked.success) {
    throw new InvalidArgumentError(`The options of connect are not right: ${describeIssues(checked.error)}`, {
      cause: checked.error,
    });
  }
  return {
    schema: options.schema ?? DEFAULT_SCHEMA,
    pollMs: Math.max(1, parseDuration(options.pollInterval ?? DEFAULT_POLL_MS, 'pollInterval')),
    launchTimeoutMs: parseDuration(options.launchTimeout ?? DEFAULT_LAUNCH_TIMEOUT_MS, 'launchTimeout'),
  };
}
