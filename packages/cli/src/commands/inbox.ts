import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';

type ListFlags = CommonFlags & { unread?: true; limit: number; before?: string };

/** `gatehouse inbox list | read`. */
export function addInboxCommand(program: Command, io: Io): void {
  const inbox = addGroup(program, 'inbox')
    .summary('read what jobs, heartbeats, webhooks, sub-agents and graphs have told')
    .description('What jobs, heartbeats, webhooks, sub-agents and graphs have told you; with scope admin, what they have told everybody.');

  withConnection(inbox.command('list', { isDefault: true }))
    .description('Shows messages, newest first; those with * are not read yet.')
    .option('--unread', 'only those that are not read yet')
    .addOption(countOption('--limit <n>', 'how many, at most 100', 20))
    .option('--before <id>', 'older than this message: the next page')
    .action(async ({ unread, limit, before, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      const page = await client.call('inbox.list', { unreadOnly: unread === true, limit, ...(before === undefined ? {} : { before }) });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(page) : messagesText(page, limit));
    });

  withConnection(inbox.command('read [ids...]'))
    .description('Marks messages as read.')
    .option('--all', 'all of them')
    .action(async (ids: string[], { all, ...flags }: CommonFlags & { all?: true }) => {
      if ((ids.length === 0) === (all !== true)) throw usageError('Name messages by their ids, or say --all.');
      const { client } = await connect(flags, io);
      const done = await client.call('inbox.markRead', all === true ? { all } : { ids });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Marked ${done.marked} messages as read.`);
    });
}

function messagesText({ messages, unread }: Result<'inbox.list'>, limit: number): string {
  if (messages.length === 0) return 'There are no messages.';
  const texts = messages.map(({ id, source, level, agentId, text, createdAt, readAt }) =>
    [
      `${readAt === null ? '*' : ' '} ${renderTime(createdAt)}  ${source}${level === 'alert' ? ', alert' : ''}  ${agentId}  ${id}`,
      ...text.split('\n').map((line) => `    ${plainText(line)}`),
    ].join('\n'),
  );
  const more = messages.length === limit ? [`There may be older ones: --before ${messages.at(-1)?.id ?? ''}`] : [];
  return [...texts, '', `${unread} not read yet.`, ...more].join('\n');
}
