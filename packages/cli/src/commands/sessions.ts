import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { type Paint, createPaint } from '../render/paint.ts';
import { plainText } from '../render/plain.ts';
import { renderTable, renderTime } from '../render/table.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { writeNewFile } from './new-file.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';

type ListFlags = CommonFlags & { agent?: string; kind?: Kind; limit: number; offset: number };
type Kind = NonNullable<ParamsInput<'session.list'>['kind']>;
type OneFlags = CommonFlags & { agent?: string };

const which = 'SESSION is a session key as `sessions list` prints it, or a conversation reference (cv_…).';

/** `gatehouse sessions list | show | export | delete`. */
export function addSessionsCommand(program: Command, io: Io): void {
  const sessions = addGroup(program, 'sessions')
    .summary('list, show, export and delete conversations')
    .description('The conversations that the token may see; deleting one needs scope admin.');

  withConnection(sessions.command('list', { isDefault: true }))
    .description('Lists the conversations of one agent, newest first.')
    .option('--agent <id>', 'agent (default: default)')
    .option('--kind <kind>', 'dm, group, sub-agent, v1 or all')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'how many to pass over', 0))
    .action(async ({ agent, kind, limit, offset, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      // The server judges the kind and the limit: it knows them.
      const listed = await client.call('session.list', { limit, offset, ...agentOf(agent), ...(kind === undefined ? {} : { kind }) });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(listed) : sessionTable(listed));
    });

  withConnection(sessions.command('show <session>'))
    .description(`Shows the newest messages of a conversation. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .addOption(countOption('--limit <n>', 'how many messages, at most 200', 20))
    .action(async (name: string, { agent, limit, ...flags }: OneFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      const address = addressOf(name, agent);
      const oldest = await client.call('session.history', { ...address, limit });
      const { total } = oldest;
      const newest = total <= limit ? oldest : await client.call('session.history', { ...address, limit, offset: total - limit });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(newest) : transcript(newest, createPaint(io)));
    });

  withConnection(sessions.command('export <session>'))
    .description(`Writes a whole conversation as one JSON object. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('--file <file>', 'a new file instead of standard output')
    .action(async (name: string, { agent, file, ...flags }: OneFlags & { file?: string }) => {
      const { client } = await connect(flags, io);
      const exported = await client.call('session.export', addressOf(name, agent));
      if (file === undefined) return printLine(io.stdout, JSON.stringify(exported, null, flags.output === 'json' ? 0 : 2));
      const written = await writeNewFile(file, new Blob([`${JSON.stringify(exported, null, 2)}\n`]).stream(), io);
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(written) : `Wrote ${exported.messageCount} messages to ${written.file}.`);
    });

  withConnection(sessions.command('delete <session>'))
    .description(`Archives a conversation and removes it. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('-y, --yes', 'do not ask')
    .action(async (name: string, { agent, yes, ...flags }: OneFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete the conversation ${name}?`, io);
      const { client } = await connect(flags, io);
      const deleted = await client.call('session.delete', addressOf(name, agent));
      const text = `Deleted ${plainText(deleted.sessionKey)} of ${deleted.agentId}, ${deleted.transcript.messageCount} messages; archived as ${deleted.archiveId}.`;
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(deleted) : text);
    });
}

function addressOf(name: string, agent: string | undefined): ParamsInput<'session.history'> {
  return name.startsWith('cv_') ? { conversationRef: name } : { sessionKey: name, ...agentOf(agent) };
}

function agentOf(agent: string | undefined): { agentId?: string } {
  return agent === undefined ? {} : { agentId: agent };
}

function sessionTable({ sessions, total, offset }: Result<'session.list'>): string {
  if (sessions.length === 0) return total === 0 ? 'There are no conversations.' : `There are ${total} conversations, none after ${offset}.`;
  const table = renderTable(
    ['Session', 'Agent', 'Kind', 'Messages', 'Tokens', 'Last used', 'Reference'],
    sessions.map((one) => [one.sessionKey, one.agentId, one.kind, one.messageCount, one.totalTokens, renderTime(one.updatedAt), one.conversationRef]),
  );
  return sessions.length === total ? table : `${table}\n${offset + 1} to ${offset + sessions.length} of ${total}`;
}

/** Texts keep their lines, indented, so that none of them looks like the head of a message. */
function transcript({ session, messages, total }: Result<'session.history'>, paint: Paint): string {
  const head = `${plainText(session.sessionKey)} of ${session.agentId}, ${total} messages, ${session.totalTokens} tokens`;
  const parts = messages.map(({ seq, role, timestamp, content, toolName, toolCalls }) => {
    const who = toolName === undefined ? role : `${role} ${plainText(toolName)}`;
    const lines = content === '' ? [] : content.split(/\r\n|\n|\r/);
    const calls = (toolCalls ?? []).map((call) => `→ ${call.name} ${call.arguments}`);
    return [
      paint('cyan', `${seq}  ${who}`) + paint('dim', `  ${renderTime(timestamp)}`),
      ...[...lines, ...calls].map((line) => `  ${plainText(line)}`),
    ].join('\n');
  });
  return [head, ...parts].join('\n\n');
}
