import type { TestProject } from 'vitest/node';

import { readServerVersion, startTestServer } from './test-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A superuser's connection string to the run's server; test files create their own databases on it. */
    databaseUrl: string;
  }
}

/** Vitest calls this once before all test files, and what it returns once after them. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer(process.env);
  try {
    const version = await readServerVersion(server.connectionString);
    console.log(`Test database: ${server.source}, version ${version}`);
    project.provide('databaseUrl', server.connectionString);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return () => server.stop();
}
