import type { DataSourceAdapter } from '../../src/index.js';

/** Of the client that `prisma generate` has made, what is needed here: its own type is assignable. */
export interface PrismaLike<Transaction extends PrismaTransaction> {
  $transaction<Result>(
    body: (transaction: Transaction) => Promise<Result>,
    options: { isolationLevel: 'ReadCommitted' | 'RepeatableRead' | 'Serializable'; timeout: number },
  ): Promise<Result>;
}

interface PrismaTransaction {
  $queryRawUnsafe<Rows = unknown>(statement: string, ...parameters: unknown[]): PromiseLike<Rows>;
  $executeRawUnsafe(statement: string): PromiseLike<number>;
}

/** Prisma ends a transaction after 5 s by itself. Holdfast has limits of its own: `timeout` and `idleTimeout` of the transaction. */
const LONGEST_TRANSACTION_MS = 10 * 60 * 1_000;

const LEVELS = {
  'read committed': 'ReadCommitted',
  'repeatable read': 'RepeatableRead',
  serializable: 'Serializable',
} as const;

export function prismaAdapter<Transaction extends PrismaTransaction>(
  prisma: PrismaLike<Transaction>,
): DataSourceAdapter<Transaction> {
  return {
    transaction: (body, { isolation, readOnly }) =>
      prisma.$transaction(
        async (transaction) => {
          if (readOnly) await transaction.$executeRawUnsafe('SET TRANSACTION READ ONLY');
          return body(transaction);
        },
        { isolationLevel: LEVELS[isolation], timeout: LONGEST_TRANSACTION_MS },
      ),
    query: async (transaction, statement, parameter) => transaction.$queryRawUnsafe<unknown[]>(statement, parameter),
  };
}
