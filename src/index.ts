export type { Admin } from './admin/admin.js';
export type * from './admin/admin-answers.js';
export type * from './admin/admin-api.js';
export type * from './admin/admin-requests.js';
export type { Compensate, CompensateFunction, CompensateOption, RollbackOptions } from './api/compensation.js';
export type { StepContext, WorkflowContext } from './api/context.js';
export type { Duration } from './api/duration.js';
export type { HoldfastOptions } from './holdfast-options.js';
export type { FenceOptions, LeaderOptions, Lease, LeaseOperations, LeaseOptions } from './api/lease.js';
export type { LogFields, Logger } from './api/logger.js';
export type { MapOptions, MapResult } from './api/map.js';
export type { GetEventOptions, ReceiveOptions, SendOptions } from './api/messages.js';
export type {
  DeliveryContext,
  OutboxAddOptions,
  OutboxEvent,
  OutboxHandler,
  OutboxOperations,
  OutboxSettings,
  OutsideOutboxAddOptions,
  WebhookOptions,
} from './api/outbox.js';
export type { MetricsSnapshot } from './api/metrics.js';
export type { EnqueueResult } from './api/enqueue-result.js';
export type {
  CallersTransaction,
  Debounce,
  Deduplication,
  EnqueueItem,
  EnqueueItemOptions,
  EnqueueOptions,
  QueueChanges,
  QueueDefinition,
  QueueDeleteRequest,
  QueueDetails,
  QueueLimits,
  QueueOperations,
  QueueSettings,
  RateLimit,
  Singleton,
} from './api/queue.js';
export type {
  AnySchedule,
  BackfilledRun,
  CatchUpPolicy,
  OverlapPolicy,
  ScheduleChanges,
  ScheduleDefinition,
  ScheduleDetails,
  ScheduleOperations,
  ScheduleSettings,
  ScheduleSummary,
} from './api/schedule.js';
export type {
  Query,
  QueryDefinitionOptions,
  Signal,
  SignalOptions,
  Update,
  UpdateDefinitionOptions,
  UpdateOptions,
} from './api/signals.js';
export type {
  CallersPool,
  CallersSql,
  DataSource,
  DataSourceAdapter,
  DataSourceTarget,
  TransactionIsolation,
  TransactionModes,
} from './api/data-source.js';
export type { TransactionContext, TransactionOptions } from './api/transaction.js';
export type { StoredValue } from './api/stored-value.js';
export type { SchemaIssue, SchemaResult, StandardSchema } from './api/standard-schema.js';
export type {
  Reconciliation,
  ReconcileFunction,
  ReconcileOption,
  ReconcileRetries,
  UnknownOutcomeOptions,
} from './api/reconciliation.js';
export type { RetryOptions } from './api/retry-options.js';
export type { StepOptions } from './api/step-options.js';
export type { ReadStreamOptions, StreamEntry, WriteStreamOptions } from './api/stream.js';
export type { HandleCancelOptions, WorkflowHandle, WorkflowStatus } from './api/workflow-handle.js';
export type { StartOptions, WorkflowOptions } from './api/workflow-options.js';
export { HoldfastClient, type ClientStartOptions } from './client.js';
export type { ClientOptions } from './client-options.js';
export type { AsyncMethodDecorator } from './decorators/method-decorator.js';
export type { StepDecorator } from './decorators/step-decorator.js';
export { runStep, Step } from './decorators/step.js';
export { runTransaction, Transaction } from './decorators/transaction.js';
export { defineWorkflow, Workflow } from './decorators/workflow.js';
export type { DriverTarget } from './drivers/open-driver.js';
export type { RunningServer } from './drivers/server-process.js';
export { startEmbeddedPostgres, type EmbeddedPostgresOptions } from './drivers/embedded-postgres.js';
export { webhook } from './effects/webhook.js';
export type { NamedInstance, WorkflowSource } from './engine/catalog.js';
export { mapWorkflows } from './engine/map-workflows.js';
export { closeStream, writeStream } from './engine/durable-streams.js';
export { defineDataSource, type DataSourceOptions } from './engine/data-source.js';
export { transaction } from './engine/transaction-context.js';
export { getEvent, receive, send, setEvent } from './engine/message-functions.js';
export { outbox } from './engine/outbox-functions.js';
export { onRollback } from './engine/on-rollback.js';
export { defineQuery } from './engine/query.js';
export { defineSignal } from './engine/signal.js';
export { sourceVersion, type SourceText, type SourceVersion } from './engine/source-version.js';
export {
  continueAsNew,
  deprecatePatch,
  now,
  patched,
  random,
  sleep,
  step,
  uuid,
  workflow,
} from './engine/workflow-functions.js';
export { defineUpdate } from './engine/update.js';
export * from './errors/index.js';
export type { ExecutorHealth } from './fleet/executor.js';
export { Holdfast } from './holdfast.js';
export type { ShutdownSignal } from './shutdown-signals.js';
export { VERSION } from './version.js';
export { renderCompletionSql } from './store/postgres/transactions/completion-install.js';
export { renderMigrationSql } from './store/postgres/migrate-render.js';
export type { ErrorClass, PayloadCodec } from './values/index.js';
