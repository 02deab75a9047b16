import { afterAll, beforeAll, describe } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { describeConformance } from './conformance.js';
import { DRIVER_KINDS } from './driver-kinds.js';

describe.each(DRIVER_KINDS)('$label', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  describeConformance({
    label: kind.label,
    library: kind.library,
    open: (options) => kind.open(database.url, options),
  });
});
