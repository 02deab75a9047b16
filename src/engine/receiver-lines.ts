/** A receiver's place among those that wait for the same topic in the same execution. */
export interface ReceiverPlace {
  readonly isFirst: boolean;
  leave(): void;
}

/** Whose turn it is when several receivers of one execution wait for one topic: who came first gets the first message. */
export class ReceiverLines {
  readonly #lines = new WeakMap<object, Map<string, ReceiverPlace[]>>();

  enter(execution: object, topic: string): ReceiverPlace {
    let topics = this.#lines.get(execution);
    if (topics === undefined) {
      topics = new Map();
      this.#lines.set(execution, topics);
    }
    const line = topics.get(topic) ?? [];
    topics.set(topic, line);
    const place: ReceiverPlace = {
      get isFirst() {
        return line[0] === place;
      },
      leave: () => {
        line.splice(line.indexOf(place), 1);
        if (line.length === 0) topics.delete(topic);
      },
    };
    line.push(place);
    return place;
  }
}
