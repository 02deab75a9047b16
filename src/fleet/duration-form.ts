import { z } from 'zod';

/** What `parseDuration` is to read. */
export const durationForm = z.union([z.number(), z.string()], "must be milliseconds, or a text such as '10s'");
