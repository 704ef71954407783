import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { AppError } from '../../app-error.ts';
import { parseJson } from '../../json.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import { syncPath } from '../sqlite/sync-path.ts';

const Note = z.object({ place: z.string(), atMs: z.number() });
export type ImportedNote = z.output<typeof Note>;

const noteFile = (dataDir: string) => join(dataDir, 'imported-into-postgres.json');

/** Notes in a data folder that its rows live in PostgreSQL now, so that no daemon works on the old ones by mistake. */
export function noteImported(dataDir: string, note: ImportedNote): void {
  const file = noteFile(dataDir);
  if (readNote(dataDir)?.place === note.place) return;
  writeFileSync(`${file}.next`, `${JSON.stringify(note)}\n`, { mode: 0o600 });
  syncPath(`${file}.next`);
  renameSync(`${file}.next`, file);
  syncPath(dataDir);
}

/** @throws StartError when the data of a folder was imported into PostgreSQL: a daemon on SQLite would work on what others work on there. */
export function refuseImported(dataDir: string): void {
  const note = readNote(dataDir);
  if (note === undefined) return;
  throw new StartError(
    'imported',
    `The data of ${dataDir} was imported into ${note.place} on ${dateOf(note)}: set storage.driver to "postgres" and storage.url in config.yaml. To return to the data as it was then, on SQLite, delete ${noteFile(dataDir)}; what happened in PostgreSQL since stays there.`,
  );
}

/** @throws AppError when the data of a folder was imported into another database. */
export function refuseOtherImport(dataDir: string, place: string): void {
  const note = readNote(dataDir);
  if (note === undefined || note.place === place) return;
  throw new AppError(
    'precondition_failed',
    `The data of ${dataDir} was imported into ${note.place} on ${dateOf(note)}. To import it once more, as it was then, delete ${noteFile(dataDir)} first.`,
  );
}

function readNote(dataDir: string): ImportedNote | undefined {
  const file = noteFile(dataDir);
  return existsSync(file) ? Note.parse(parseJson(readFileSync(file, 'utf8'), { maxDepth: 2 })) : undefined;
}

const dateOf = ({ atMs }: ImportedNote) => new Date(atMs).toISOString().slice(0, 16).replace('T', ' ');
