import { request } from 'node:http';
import { join } from 'node:path';

/** Asks the running daemon of a home through its control socket, as `gatehouse backup` does. */
export function askBackup(home: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: join(home, 'gatehouse.sock'), path: '/control/backup', method: 'POST' }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (piece: string) => (text += piece));
      incoming.on('end', () => (text.includes('"result"') ? resolve() : reject(new Error(`the backup failed: ${text.slice(-300)}`))));
    });
    asked.on('error', reject);
    asked.end(JSON.stringify({ file }));
  });
}
