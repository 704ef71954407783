import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type ListFlags = CommonFlags & { unread?: true; limit: number; before?: string };

/** `gatehouse inbox list | read`. */
export function addInboxCommand(program: Command, io: Io): void {
  const inbox = addGroup(program, 'inbox')
    .summary('read messages from jobs, heartbeats, webhooks, sub-agents and graphs')
    .description('Messages to you from jobs, heartbeats, webhooks, sub-agents and graphs; with scope admin, messages to all users.');

  addList(inbox, io);
  addRead(inbox, io);
}

function addList(inbox: Command, io: Io): void {
  withConnection(inbox.command('list', { isDefault: true }))
    .description('Shows messages, newest first; * marks unread ones.')
    .option('--unread', 'only unread messages')
    .addOption(countOption('--limit <n>', 'number of messages, at most 100', 20))
    .option('--before <id>', 'older than this message: the next page')
    .action(async ({ unread, limit, before, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      const page = await client.call('inbox.list', { unreadOnly: unread === true, limit, before });
      print(io, flags, page, () => messagesText(page, limit));
    });
}

function addRead(inbox: Command, io: Io): void {
  withConnection(inbox.command('read [ids...]'))
    .description('Marks messages as read.')
    .option('--all', 'all messages')
    .action(async (ids: string[], { all, ...flags }: CommonFlags & { all?: true }) => {
      if ((ids.length === 0) === (all !== true)) throw usageError('Pass message ids or --all.');
      const { client } = await connect(flags, io);
      const done = await client.call('inbox.markRead', all === true ? { all } : { ids });
      print(io, flags, done, () => `Marked ${done.marked} messages as read.`);
    });
}

function messagesText({ messages, unread }: Result<'inbox.list'>, limit: number): string {
  if (messages.length === 0) return 'No messages.';
  const texts = messages.map(({ id, source, level, agentId, text, createdAt, readAt }) =>
    [
      `${readAt === null ? '*' : ' '} ${renderTime(createdAt)}  ${source}${level === 'alert' ? ', alert' : ''}  ${agentId}  ${id}`,
      ...text.split('\n').map((line) => `    ${plainText(line)}`),
    ].join('\n'),
  );
  const more = messages.length === limit ? [`Older messages: --before ${messages.at(-1)?.id ?? ''}`] : [];
  return [...texts, '', `${unread} unread.`, ...more].join('\n');
}
