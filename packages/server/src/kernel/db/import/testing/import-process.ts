import { systemClock } from '../../../clock.ts';
import { importHome } from '../import-home.ts';
import { lastTables, libraryMigrations } from './library.ts';

const [dataDir = '', url = '', killAt = ''] = process.argv.slice(2);

const die = (): never => {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('unreachable');
};
let reports = 0;
const finish = {
  // Read in the transaction that ends the import, when the note of the home is written.
  get text() {
    return killAt === 'end' ? die() : 'SELECT 1';
  },
};

const report = await importHome({
  dataDir,
  address: { url },
  migrations: libraryMigrations,
  programVersion: 'test',
  clock: systemClock,
  lastTables,
  finish: [finish],
  onProgress: () => {
    reports++;
    if (String(reports) === killAt) die();
  },
});
process.stdout.write(`${JSON.stringify({ ...report, reports, memory: process.resourceUsage().maxRSS })}\n`);
