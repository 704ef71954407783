import { writeSync } from 'node:fs';
import { systemClock } from '../../../clock.ts';
import { silentLog } from '../../../log.ts';
import { openDb } from '../open-db.ts';
import { addNote } from './parts.ts';

// Writes without end and prints the number of each write that was acknowledged; ends by being killed.
const db = await openDb({ dataDir: process.argv[2] ?? '', workerUrl: new URL('./worker.ts', import.meta.url), clock: systemClock, log: silentLog });
let next = 0;
async function client(): Promise<never> {
  for (;;) {
    const number = next++;
    await db.write(addNote, { text: String(number) });
    writeSync(1, `${number}\n`);
  }
}
await Promise.all(Array.from({ length: 8 }, client));
