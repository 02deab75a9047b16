import { createHash } from 'node:crypto';
import { type Order, UndeliverableError } from './order.js';

/** The carrier needs no trouble of its own: it delivers anywhere but to the moon, and knows a parcel by its order. */
export const carrier = {
  async book({ id, address }: Order): Promise<string> {
    if (address === 'The Moon') throw new UndeliverableError(`Order ${id} cannot be delivered to ${address}.`);
    return `parcel-${createHash('sha256').update(id).digest('hex').slice(0, 8)}`;
  },
};
