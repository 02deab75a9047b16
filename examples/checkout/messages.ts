import type { Order, Receipt } from './checkout.js';

/** What the story tells a worker process. */
export type ToWorker =
  | { readonly kind: 'start'; readonly order: Order }
  /** The step that hangs may go on. */
  | { readonly kind: 'let-go' }
  | { readonly kind: 'stop' };

/** What a worker process tells the story. */
export type FromWorker =
  | { readonly kind: 'ready' }
  | { readonly kind: 'started'; readonly orderId: string }
  /** The body of this step has begun, and hangs. */
  | { readonly kind: 'holding'; readonly orderId: string; readonly step: string }
  /** What the handle of the worker that started it returned, or threw: the class of the error. */
  | { readonly kind: 'returned'; readonly orderId: string; readonly receipt: Receipt }
  | { readonly kind: 'threw'; readonly orderId: string; readonly error: string };
