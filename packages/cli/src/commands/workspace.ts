import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine, writePaced } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { readLocalText } from './read-skill.ts';
import { changesText, listText, logText, statusText } from './workspace-text.ts';

/** File size limit of the daemon. */
const maxWriteBytes = 512 * 1024;

/** `gatehouse workspace status | ls | read | write | delete | reset | init | changes | diff | log | commit | restore`. */
export function addWorkspaceCommand(program: Command, io: Io): void {
  const workspace = addGroup(program, 'workspace')
    .summary('view, change and commit the files of an agent')
    .description('The workspace folder of an agent; FILE and DIR are paths in it. Changes need a token with scope admin.');

  addStatus(workspace, io);
  addLs(workspace, io);
  addRead(workspace, io);
  addWrite(workspace, io);
  addDelete(workspace, io);
  addReset(workspace, io);
  addInit(workspace, io);
  addChanges(workspace, io);
  addDiff(workspace, io);
  addLog(workspace, io);
  addCommit(workspace, io);
  addRestore(workspace, io);
}

function addStatus(workspace: Command, io: Io): void {
  withConnection(workspace.command('status <agent>'))
    .description('Shows the location of the folder and its template files.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('workspace.status', { agentId });
      print(io, flags, status, statusText);
    });
}

function addLs(workspace: Command, io: Io): void {
  withConnection(workspace.command('ls <agent> [dir]'))
    .description('Lists the workspace, or a folder in it.')
    .action(async (agentId: string, subdir: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('workspace.listDir', { agentId, subdir });
      print(io, flags, listed, listText);
    });
}

function addRead(workspace: Command, io: Io): void {
  withConnection(workspace.command('read <agent> <file>'))
    .description('Prints a text file unchanged.')
    .action(async (agentId: string, filePath: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const file = await client.call('workspace.readFile', { agentId, filePath });
      if (flags.output === 'json') printLine(io.stdout, JSON.stringify(file));
      else await writePaced(io.stdout, io.stdout.isTTY === true ? file.content.split('\n').map(plainText).join('\n') : file.content);
    });
}

function addWrite(workspace: Command, io: Io): void {
  withConnection(workspace.command('write <agent> <file>'))
    .description('Writes a complete file from standard input or a local file.')
    .option('--from <local>', 'local file to read instead of standard input')
    .action(async (agentId: string, filePath: string, { from, ...flags }: CommonFlags & { from?: string }) => {
      const content = from === undefined ? await text(io.stdin) : await readLocalText(from, maxWriteBytes, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.writeFile', { agentId, filePath, content });
      print(io, flags, done, () => `Wrote ${plainText(filePath)}, ${done.sizeBytes} bytes.`);
    });
}

function addDelete(workspace: Command, io: Io): void {
  withConnection(workspace.command('delete <agent> <file>'))
    .description('Deletes a file.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, filePath: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete ${plainText(filePath)} of ${agentId}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.deleteFile', { agentId, filePath });
      print(io, flags, done, () => `Deleted ${plainText(filePath)}.`);
    });
}

function addReset(workspace: Command, io: Io): void {
  withConnection(workspace.command('reset <agent> <file>'))
    .description('Resets a template file, such as SOUL.md, to its default.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, fileName: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Reset ${plainText(fileName)} of ${agentId} to its template?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.resetFile', { agentId, fileName });
      print(io, flags, done, () => `Reset ${done.fileName} to its template.`);
    });
}

function addInit(workspace: Command, io: Io): void {
  withConnection(workspace.command('init <agent>'))
    .description('Creates folders, template files and the repository; keeps existing files.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.init', { agentId });
      print(io, flags, done, () => `Set up ${plainText(done.dir)}.`);
    });
}

function addChanges(workspace: Command, io: Io): void {
  withConnection(workspace.command('changes <agent>'))
    .description('Lists files that differ from the last commit.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('workspace.git.status', { agentId });
      print(io, flags, status, changesText);
    });
}

function addDiff(workspace: Command, io: Io): void {
  withConnection(workspace.command('diff <agent> [file]'))
    .description('Shows the changes since the last commit.')
    .action(async (agentId: string, filePath: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const found = await client.call('workspace.git.diff', { agentId, filePath });
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(found));
      await writePaced(io.stdout, found.diff === '' ? 'No changes to committed files.\n' : found.diff.split('\n').map(plainText).join('\n'));
    });
}

function addLog(workspace: Command, io: Io): void {
  withConnection(workspace.command('log <agent>'))
    .description('Lists commits, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 20))
    .action(async (agentId: string, { limit, ...flags }: CommonFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      const log = await client.call('workspace.git.log', { agentId, limit });
      print(io, flags, log, logText);
    });
}

function addCommit(workspace: Command, io: Io): void {
  withConnection(workspace.command('commit <agent> [files...]'))
    .description('Commits the given files, or all changes.')
    .option('-m, --message <text>', 'commit message')
    .action(async (agentId: string, paths: string[], { message, ...flags }: CommonFlags & { message?: string }) => {
      const { client } = await connect(flags, io);
      const made = await client.call('workspace.git.commit', {
        agentId,
        message,
        ...(paths.length === 0 ? {} : { paths }),
      });
      print(io, flags, made, () => `Committed ${made.sha.slice(0, 10)}: ${plainText(made.message)}`);
    });
}

function addRestore(workspace: Command, io: Io): void {
  withConnection(workspace.command('restore <agent> <file>'))
    .description('Restores a file from the last commit.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, filePath: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Restore ${plainText(filePath)} of ${agentId}? Changes since the last commit are lost.`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.git.restore', { agentId, filePath });
      print(io, flags, done, () => `Restored ${plainText(filePath)}.`);
    });
}
