import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { KilledChannelsReport } from '../killed-channels.ts';
import { channelPlatforms } from './channel-platforms.ts';
import { root } from './daemon.ts';

const folder = join(root, 'node_modules/.cache/kills-of-channels');
const Report = z.strictObject({ kills: z.number(), answered: z.number(), unknown: z.number(), gone: z.number(), wrong: z.array(z.string()) });
const Reports = z.partialRecord(z.enum(channelPlatforms), Report);

/** Kills of channels on this commit so far, so that an interrupted run continues; none without a commit. */
export async function readKills(commit: string | undefined): Promise<KilledChannelsReport> {
  const text = commit === undefined ? undefined : await readFile(join(folder, `${commit}.json`), 'utf8').catch(() => undefined);
  return text === undefined ? {} : Reports.parse(JSON.parse(text));
}

/** Keeps them. */
export async function keepKills(commit: string | undefined, reports: KilledChannelsReport): Promise<void> {
  if (commit === undefined) return;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${commit}.json`), JSON.stringify(reports));
}
