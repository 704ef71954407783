import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient, InvalidParamsError } from '@gatehouse/client';
import { askControlInfo, socketFetch } from '../connection/control-socket.ts';
import { controlSocketFile, homeDir } from '../connection/target.ts';
import { exitCode } from '../exit-codes.ts';
import { CliError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { changeText, paintDiff } from './config-text.ts';
import { ask } from './confirm.ts';

/**
 * Opens a copy of config.yaml in an editor, again while it has mistakes and the user wants to repair them, and applies it. The daemon
 * refuses it when config.yaml was changed meanwhile; the copy is kept then, as after every other failure.
 */
export async function editConfig({ home, yes }: { readonly home?: string; readonly yes?: true }, io: Io): Promise<void> {
  const client = await connectAsOwner(home, io);
  const { text, digest } = await client.call('config.get', { text: true });
  if (typeof text !== 'string' || typeof digest !== 'string') throw new CliError('The daemon is too old for `config edit`.');
  // The text can hold secrets: the folder is for this user alone.
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-config-'));
  const copy = join(folder, 'config.yaml');
  await writeFile(copy, text, { mode: 0o600 });
  try {
    for (;;) {
      await openEditor(copy, io);
      const edited = await readFile(copy, 'utf8');
      if (edited === text) {
        printLine(io.stdout, 'Nothing was changed.');
        break;
      }
      const preview = await previewOf(client, edited, digest, io);
      if (preview === undefined) {
        if (await ask('Edit again?', io)) continue;
        throw new CliError('Nothing was changed.');
      }
      printLine(io.stderr, paintDiff(preview, io));
      if (yes !== true && !(await ask('Apply this?', io))) throw new CliError('Nothing was changed.');
      const done = await client.call('config.apply', { text: edited, ifDigest: digest, confirm: true });
      printLine(io.stdout, changeText('Applied', done, io));
      break;
    }
  } catch (error) {
    printLine(io.stderr, `note: your text is in ${copy}`);
    throw error;
  }
  await rm(folder, { recursive: true, force: true });
}

/** Only the owner on the machine of the daemon sees the text itself. */
async function connectAsOwner(home: string | undefined, io: Io): Promise<Client> {
  const folder = homeDir({ home }, io);
  const socketFile = controlSocketFile(folder);
  if ((await askControlInfo(socketFile)) === undefined)
    throw new CliError(`No daemon of ${folder} runs.`, {
      exitCode: exitCode.unreachable,
      hint: `Edit ${join(folder, 'config.yaml')} itself, and check it with \`gatehouse config check\`.`,
    });
  return createClient({ url: 'http://localhost', fetch: socketFetch(socketFile), retry: { retries: 0 } });
}

/** Returns the diff; prints what is wrong with the text, and returns undefined, when it cannot be used. */
async function previewOf(client: Client, text: string, ifDigest: string, io: Io): Promise<string | undefined> {
  try {
    const { diff = '' } = await client.call('config.apply', { text, ifDigest, confirm: true, dryRun: true });
    return diff;
  } catch (error) {
    if (!(error instanceof InvalidParamsError)) throw error;
    printLine(io.stderr, `error: ${plainText(error.message)}`);
    return undefined;
  }
}

async function openEditor(file: string, io: Io): Promise<void> {
  const editor = io.env['VISUAL'] || io.env['EDITOR'] || 'vi';
  // Editors are often set with arguments (`code --wait`), which only a shell splits as their users expect.
  const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit', env: { ...io.env }, cwd: io.workingDir });
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new CliError(`The editor ended with ${String(code)}: ${editor}`, { hint: 'Set EDITOR to the editor that you want.' });
}
