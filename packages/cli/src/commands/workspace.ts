import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine, writePaced } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { readLocalText } from './read-skill.ts';
import { changesText, listText, logText, statusText } from './workspace-text.ts';

/** File size limit of the daemon. */
const maxWriteBytes = 512 * 1024;

/** `gatehouse workspace status | ls | read | write | delete | reset | init | changes | diff | log | commit | restore`. */
export function addWorkspaceCommand(program: Command, io: Io): void {
  const workspace = addGroup(program, 'workspace')
    .summary('view, change and commit the files of an agent')
    .description('The workspace folder of an agent; FILE and DIR are paths in it. Changes need a token with scope admin.');

  withConnection(workspace.command('status <agent>'))
    .description('Shows the location of the folder and its template files.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('workspace.status', { agentId });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(status) : statusText(status));
    });

  withConnection(workspace.command('ls <agent> [dir]'))
    .description('Lists the workspace, or a folder in it.')
    .action(async (agentId: string, subdir: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('workspace.listDir', { agentId, ...(subdir === undefined ? {} : { subdir }) });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(listed) : listText(listed));
    });

  withConnection(workspace.command('read <agent> <file>'))
    .description('Prints a text file unchanged.')
    .action(async (agentId: string, filePath: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const file = await client.call('workspace.readFile', { agentId, filePath });
      if (flags.output === 'json') printLine(io.stdout, JSON.stringify(file));
      else await writePaced(io.stdout, io.stdout.isTTY === true ? file.content.split('\n').map(plainText).join('\n') : file.content);
    });

  withConnection(workspace.command('write <agent> <file>'))
    .description('Writes a complete file from standard input or a local file.')
    .option('--from <local>', 'local file to read instead of standard input')
    .action(async (agentId: string, filePath: string, { from, ...flags }: CommonFlags & { from?: string }) => {
      const content = from === undefined ? await text(io.stdin) : await readLocalText(from, maxWriteBytes, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.writeFile', { agentId, filePath, content });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Wrote ${plainText(filePath)}, ${done.sizeBytes} bytes.`);
    });

  withConnection(workspace.command('delete <agent> <file>'))
    .description('Deletes a file.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, filePath: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete ${plainText(filePath)} of ${agentId}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.deleteFile', { agentId, filePath });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Deleted ${plainText(filePath)}.`);
    });

  withConnection(workspace.command('reset <agent> <file>'))
    .description('Resets a template file, such as SOUL.md, to its default.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, fileName: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Reset ${plainText(fileName)} of ${agentId} to its template?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.resetFile', { agentId, fileName });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Reset ${done.fileName} to its template.`);
    });

  withConnection(workspace.command('init <agent>'))
    .description('Creates folders, template files and the repository; keeps existing files.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.init', { agentId });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Set up ${plainText(done.dir)}.`);
    });

  withConnection(workspace.command('changes <agent>'))
    .description('Lists files that differ from the last commit.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('workspace.git.status', { agentId });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(status) : changesText(status));
    });

  withConnection(workspace.command('diff <agent> [file]'))
    .description('Shows the changes since the last commit.')
    .action(async (agentId: string, filePath: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const found = await client.call('workspace.git.diff', { agentId, ...(filePath === undefined ? {} : { filePath }) });
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(found));
      await writePaced(io.stdout, found.diff === '' ? 'No changes to committed files.\n' : found.diff.split('\n').map(plainText).join('\n'));
    });

  withConnection(workspace.command('log <agent>'))
    .description('Lists commits, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 20))
    .action(async (agentId: string, { limit, ...flags }: CommonFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      const log = await client.call('workspace.git.log', { agentId, limit });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(log) : logText(log));
    });

  withConnection(workspace.command('commit <agent> [files...]'))
    .description('Commits the given files, or all changes.')
    .option('-m, --message <text>', 'commit message')
    .action(async (agentId: string, paths: string[], { message, ...flags }: CommonFlags & { message?: string }) => {
      const { client } = await connect(flags, io);
      const made = await client.call('workspace.git.commit', {
        agentId,
        ...(message === undefined ? {} : { message }),
        ...(paths.length === 0 ? {} : { paths }),
      });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(made) : `Committed ${made.sha.slice(0, 10)}: ${plainText(made.message)}`);
    });

  withConnection(workspace.command('restore <agent> <file>'))
    .description('Restores a file from the last commit.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (agentId: string, filePath: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Restore ${plainText(filePath)} of ${agentId}? Changes since the last commit are lost.`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('workspace.git.restore', { agentId, filePath });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Restored ${plainText(filePath)}.`);
    });
}
