/**
 * What the topics of updates, and the keys of their requests and replies, begin with. The functions `read_events`,
 * `suspend_workflow`, `continue_workflow` and `fork_workflow` know it, too.
 */
export const UPDATE_PREFIX = 'holdfast:update:';
