import { createServer } from 'node:net';

/** A port of 127.0.0.1 that nothing listens on; it may be taken again before it is used. */
export async function pickFreePort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === undefined) throw new Error('The operating system gave no free TCP port on 127.0.0.1.');
  return port;
}

/** Whether `port` of 127.0.0.1 could be listened on at this moment. */
export async function isPortFree(port: number): Promise<boolean> {
  return (await listenOnce(port)) !== undefined;
}

function listenOnce(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(undefined);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        resolve(typeof address === 'object' && address !== null ? address.port : undefined);
      });
    });
  });
}
