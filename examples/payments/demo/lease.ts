/** How long the others wait before they take over from a worker that is not heard of. Short, so that the demonstration is. */
export const LEASE = '2s';
