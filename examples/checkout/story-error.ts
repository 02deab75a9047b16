/** Something that a person can act on: shown as its message, without a stack. */
export class StoryError extends Error {
  override readonly name = 'StoryError';
}
