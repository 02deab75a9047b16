import { setTimeout as pause } from 'node:timers/promises';
import { OwnServer } from '../support/own-server.js';
import { createStandby, promote } from '../support/own-standby.js';
import { Endpoint } from './endpoint.js';
import type { FailoverKind, FailoverOptions } from './options.js';

const SETTINGS = {
  max_connections: 100,
  max_wal_size: '256MB',
  // A standby that hears nothing asks again soon.
  wal_retrieve_retry_interval: '200ms',
  wal_receiver_timeout: '5s',
  wal_sender_timeout: '5s',
};

/** A primary, and a standby that listens to it. */
export class Pair {
  readonly primary: OwnServer;
  readonly standby: OwnServer;
  /** The standby's way to the primary. */
  readonly #replication: Endpoint;

  private constructor(primary: OwnServer, standby: OwnServer, replication: Endpoint) {
    this.primary = primary;
    this.standby = standby;
    this.#replication = replication;
  }

  static async create({ release, mutant }: FailoverOptions): Promise<Pair> {
    const primary = await OwnServer.create({ release, settings: SETTINGS });
    try {
      return await Pair.#beside(primary, 'standby_0', mutant !== 'asynchronous');
    } catch (error) {
      await primary.close();
      throw error;
    }
  }

  /** The standby is the primary from here on: gives it a standby of its own. */
  async next(name: string, { mutant }: FailoverOptions): Promise<Pair> {
    await this.#replication.close();
    return Pair.#beside(this.standby, name, mutant !== 'asynchronous');
  }

  static async #beside(primary: OwnServer, name: string, synchronous: boolean): Promise<Pair> {
    const replication = await Endpoint.open(primary.port);
    try {
      const standby = await createStandby(primary, { name, synchronous, through: replication.port });
      return new Pair(primary, standby, replication);
    } catch (error) {
      await replication.close();
      throw error;
    }
  }

  /** Loses the primary after the standby has heard nothing of it for that long, and makes the standby one. */
  async failOver(kind: FailoverKind, deafMs: number): Promise<void> {
    this.#replication.route(undefined);
    this.#replication.cut();
    await pause(deafMs);
    switch (kind) {
      case 'kill':
        await this.primary.crash();
        break;
      case 'immediate':
      case 'fast':
        await this.primary.stop(kind);
        break;
      case 'cut-off':
      case 'mixed':
        break;
    }
    await promote(this.standby);
  }

  async close(): Promise<void> {
    await this.#replication.close();
    await this.standby.close();
    await this.primary.close();
  }
}
