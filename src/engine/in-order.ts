/** Sends what has been prepared in the order of the calls, however long each preparation takes. */
export class InOrder {
  #last: Promise<unknown> | undefined;

  /** `prepare` runs at once. What fails to be prepared is not sent, and holds up nobody. */
  async send<Prepared, Answer>(
    prepare: () => Prepared | Promise<Prepared>,
    send: (prepared: Prepared) => Promise<Answer>,
  ): Promise<Answer> {
    const before = this.#last;
    const prepared = prepare();
    // The usual case, in which nothing needs to wait for anything.
    if (before === undefined && !(prepared instanceof Promise)) return send(prepared);
    const turn = Promise.allSettled([prepared, before]);
    this.#last = turn;
    const [result] = await turn;
    // From here to the sending without a pause, in which somebody could overtake.
    if (this.#last === turn) this.#last = undefined;
    if (result.status === 'rejected') throw result.reason;
    return send(result.value);
  }
}
