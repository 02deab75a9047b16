/**
 * What the topics of updates, and the keys of their requests and replies, begin with. The functions `is_left_behind` and
 * `continue_workflow` know it, too.
 */
export const UPDATE_PREFIX = 'holdfast:update:';
