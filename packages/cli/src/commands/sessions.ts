import type { ParamsInput } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { createPaint } from '../render/paint.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { writeNewFile } from './new-file.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { compactedText, erasedText, foundText, sessionTable, transcript } from './sessions-text.ts';

type ListFlags = CommonFlags & { agent?: string; kind?: Kind; limit: number; offset: number };
type SearchFlags = CommonFlags & { agent?: string; scope?: Scope; limit: number };
type Scope = NonNullable<ParamsInput<'session.search'>['scope']>;
type Kind = NonNullable<ParamsInput<'session.list'>['kind']>;
type OneFlags = CommonFlags & { agent?: string };

const which = 'SESSION is a session key as `sessions list` prints it, or a conversation reference (cv_…).';

/** Timeout for compaction, in which a model summarizes a long conversation. */
const compactTimeoutMs = 600_000;

/** `gatehouse sessions list | show | search | export | fork | compact | reset | erase | delete`. */
export function addSessionsCommand(program: Command, io: Io): void {
  const sessions = addGroup(program, 'sessions')
    .summary('list, show, search, export, fork, compact, reset, erase and delete conversations')
    .description('Conversations that the token may access; erasing and deleting need scope admin.');

  addList(sessions, io);
  addShow(sessions, io);
  addSearch(sessions, io);
  addExport(sessions, io);
  addFork(sessions, io);
  addCompact(sessions, io);
  addReset(sessions, io);
  addErase(sessions, io);
  addDelete(sessions, io);
}

function addList(sessions: Command, io: Io): void {
  withConnection(sessions.command('list', { isDefault: true }))
    .description('Lists the conversations, newest first.')
    .option('--agent <id>', 'only those of this agent')
    .option('--kind <kind>', 'dm, group, sub-agent, v1 or all')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ agent, kind, limit, offset, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      // The server validates the kind and the limit.
      const listed = await client.call('session.list', {
        limit,
        offset,
        ...(agent === undefined ? { allAgents: true } : { agentId: agent }),
        kind,
      });
      print(io, flags, listed, sessionTable);
    });
}

function addShow(sessions: Command, io: Io): void {
  withConnection(sessions.command('show <session>'))
    .description(`Shows the newest messages of a conversation. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .addOption(countOption('--limit <n>', 'number of messages, at most 200', 20))
    .action(async (name: string, { agent, limit, ...flags }: OneFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      const address = addressOf(name, agent);
      const oldest = await client.call('session.history', { ...address, limit });
      const { total } = oldest;
      const newest = total <= limit ? oldest : await client.call('session.history', { ...address, limit, offset: total - limit });
      print(io, flags, newest, () => transcript(newest, createPaint(io)));
    });
}

function addSearch(sessions: Command, io: Io): void {
  withConnection(sessions.command('search <words...>'))
    .description('Finds messages by terms in all conversations that the token may access; "quoted terms" must be adjacent.')
    .option('--agent <id>', 'only conversations of this agent')
    .option('--scope <role>', 'role of the author: user, assistant, tool or all')
    .addOption(countOption('--limit <n>', 'how many, at most 50', 10))
    .action(async (words: string[], { agent, scope, limit, ...flags }: SearchFlags) => {
      const query = words.join(' ').trim();
      if (query === '') throw usageError('The query is empty.');
      const { client } = await connect(flags, io);
      const found = await client.call('session.search', { query, limit, agentId: agent, scope });
      print(io, flags, found, () => foundText(found, createPaint(io)));
    });
}

function addExport(sessions: Command, io: Io): void {
  withConnection(sessions.command('export <session>'))
    .description(`Writes a whole conversation as one JSON object. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('--file <file>', 'a new file instead of standard output')
    .action(async (name: string, { agent, file, ...flags }: OneFlags & { file?: string }) => {
      const { client } = await connect(flags, io);
      const exported = await client.call('session.export', addressOf(name, agent));
      if (file === undefined) return print(io, flags, exported, () => JSON.stringify(exported, null, 2));
      const written = await writeNewFile(file, new Blob([`${JSON.stringify(exported, null, 2)}\n`]).stream(), io);
      print(io, flags, written, () => `Wrote ${exported.messageCount} messages to ${written.file}.`);
    });
}

function addFork(sessions: Command, io: Io): void {
  withConnection(sessions.command('fork <session>'))
    .description(`Creates a conversation from the messages of another one. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .addOption(countOption('--at <n>', 'number of the last message to include (default: all)'))
    .option('--key <key>', 'session key of the new conversation (default: generated)')
    .action(async (name: string, { agent, at, key, ...flags }: OneFlags & { at?: number; key?: string }) => {
      const { client } = await connect(flags, io);
      const made = await client.call('session.fork', {
        ...addressOf(name, agent),
        seq: at,
        forkKey: key,
      });
      const text = `Created ${plainText(made.sessionKey)} with ${made.messageCount} messages: ${made.conversationRef}`;
      print(io, flags, made, () => text);
    });
}

function addCompact(sessions: Command, io: Io): void {
  withConnection(sessions.command('compact <session>'))
    .description(`Summarizes earlier messages, so that the model reads less; all messages are kept. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('--instructions <text>', 'what the summary should focus on')
    .action(async (name: string, { agent, instructions, ...flags }: OneFlags & { instructions?: string }) => {
      const { client } = await connect(flags, io);
      const done = await client.call('session.compact', { ...addressOf(name, agent), instructions }, { timeoutMs: compactTimeoutMs });
      print(io, flags, done, compactedText);
    });
}

function addReset(sessions: Command, io: Io): void {
  withConnection(sessions.command('reset <session>'))
    .description(`Starts over in a conversation: the agent no longer sees its messages, which stay readable. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .action(async (name: string, { agent, ...flags }: OneFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('session.reset', addressOf(name, agent));
      const text = `Reset ${plainText(done.sessionKey)} of ${done.agentId}: the agent no longer sees ${done.previousMessageCount} messages.`;
      print(io, flags, done, () => text);
    });
}

function addErase(sessions: Command, io: Io): void {
  withConnection(sessions.command('erase <session>'))
    .description(`Permanently erases the messages and summaries of a conversation; needs scope admin. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('--memory', 'also erase memories from this conversation')
    .option('--derived', 'also erase memories derived from those; with --memory')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (name: string, { agent, memory, derived, yes, ...flags }: OneFlags & { memory?: true; derived?: true; yes?: true }) => {
      if (derived === true && memory !== true) throw usageError('--derived needs --memory.');
      if (yes !== true) await confirm(`Permanently erase the content of ${name}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('session.reset_conversation', {
        ...addressOf(name, agent),
        ...(memory === true ? { memory } : {}),
        ...(derived === true ? { purgeDerived: derived } : {}),
      });
      print(io, flags, done, erasedText);
    });
}

function addDelete(sessions: Command, io: Io): void {
  withConnection(sessions.command('delete <session>'))
    .description(`Archives a conversation and removes it. ${which}`)
    .option('--agent <id>', 'agent of the session key (default: default)')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (name: string, { agent, yes, ...flags }: OneFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete the conversation ${name}?`, io);
      const { client } = await connect(flags, io);
      const deleted = await client.call('session.delete', addressOf(name, agent));
      const text = `Deleted ${plainText(deleted.sessionKey)} of ${deleted.agentId}, ${deleted.transcript.messageCount} messages; archived as ${deleted.archiveId}.`;
      print(io, flags, deleted, () => text);
    });
}

/** Identifies a conversation from the command line, by reference or by session key and agent. */
export function addressOf(name: string, agent: string | undefined): ParamsInput<'session.history'> {
  return name.startsWith('cv_') ? { conversationRef: name } : { sessionKey: name, agentId: agent };
}
