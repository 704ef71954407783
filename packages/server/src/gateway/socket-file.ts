import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:net';

/** Listens on a Unix socket of the home that only its owner may open. Disposing it cuts the connections and removes the file. */
export async function listenOnFile(server: Server, file: string, cutAll: () => void): Promise<AsyncDisposable> {
  // Removes what a killed daemon left behind; the lock of the data folder ensures that no other one runs.
  await rm(file, { force: true });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(file, resolve));
  await chmod(file, 0o600);
  server.unref();
  return {
    async [Symbol.asyncDispose]() {
      server.close();
      cutAll();
      await rm(file, { force: true });
    },
  };
}
