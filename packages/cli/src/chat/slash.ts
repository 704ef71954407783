import { readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { openFile } from '../commands/open-file.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderColumns, renderRelative } from '../render/table.ts';
import { type Conversation, type StatelessConversation, terminalKeys } from './conversation.ts';
import type { ChatView } from './view.ts';

/** What commands of the chat work on. */
export interface ChatState {
  readonly client: Client;
  readonly io: Io;
  readonly view: ChatView;
  readonly conversation: Conversation;
  /** Set when nothing is kept. */
  readonly stateless: StatelessConversation | undefined;
  /** Files for the next message. */
  readonly attachments: { readonly mediaId: string; readonly name: string }[];
  /** Tokens of this chat so far. */
  tokens: number;
  /** The list that was shown last, for numbers. */
  listed: readonly string[];
  isOver: boolean;
}

interface SlashCommand {
  readonly usage: string;
  readonly text: string;
  readonly needsKept?: true;
  readonly run: (state: ChatState, rest: string) => Promise<void> | void;
  readonly complete?: (state: ChatState, rest: string) => Promise<readonly string[]>;
}

const maxListed = 20;

const commands: Readonly<Record<string, SlashCommand>> = {
  help: {
    usage: '/help',
    text: 'shows the commands and keys',
    run: ({ view, conversation }) => view.note(helpText(conversation.kept !== undefined)),
  },
  new: {
    usage: '/new',
    text: 'starts another conversation',
    run({ view, conversation }) {
      const name = conversation.renew();
      view.note(name === undefined ? 'New conversation.' : `New conversation: ${name}. \`gatehouse chat --continue\` continues it.`);
    },
  },
  sessions: {
    usage: '/sessions [N]',
    text: 'lists conversations, or continues one by number or key',
    needsKept: true,
    run: (state, rest) => (rest === '' ? listSessions(state) : openSession(state, rest)),
    complete: async ({ client }) => (await terminalSessions(client)).map(({ sessionKey }) => sessionKey),
  },
  find: {
    usage: '/find WORDS',
    text: 'finds messages in all conversations',
    needsKept: true,
    run: (state, rest) => find(state, rest),
  },
  agent: {
    usage: '/agent [NAME]',
    text: 'shows the agents, or chats with another one',
    run: (state, rest) => chooseAgent(state, rest),
    complete: async ({ client }) => (await client.call('agents.list', {})).agents,
  },
  model: {
    usage: '/model [NAME]',
    text: 'shows the models, or changes the model',
    run: (state, rest) => chooseModel(state, rest),
    complete: async ({ client }) => await modelNames(client),
  },
  attach: {
    usage: '/attach FILE',
    text: 'sends a file with the next message',
    needsKept: true,
    run: (state, rest) => attach(state, rest),
    complete: ({ io }, rest) => completeFile(io, rest),
  },
  steer: {
    usage: '/steer MESSAGE',
    text: 'passes a message to the running answer, before its next step',
    needsKept: true,
    run: ({ view }) => view.note('No answer is running; send it as a message.'),
  },
  cost: { usage: '/cost', text: 'shows tokens and cost of the conversation', run: (state) => showCost(state) },
  good: { usage: '/good [NOTE]', text: 'marks the last answer', needsKept: true, run: (state, rest) => mark(state, 'good', rest) },
  bad: { usage: '/bad [NOTE]', text: 'marks the last answer', needsKept: true, run: (state, rest) => mark(state, 'bad', rest) },
  exit: {
    usage: '/exit',
    text: 'leaves the chat; so does Ctrl-D',
    run(state) {
      state.isOver = true;
    },
  },
};

/** One line for plain chats, which cannot show a table in passing. */
export function shortHelp(isKept: boolean): string {
  return `/new ${isKept ? 'starts another conversation' : 'clears the conversation'}, ${isKept ? '/good or /bad [note] marks the last answer, ' : ''}/help shows all commands, /exit quits, Ctrl-C stops an answer.`;
}

function helpText(isKept: boolean): string {
  const rows = Object.values(commands)
    .filter(({ needsKept }) => isKept || needsKept !== true)
    .map(({ usage, text }) => [usage, text]);
  const keys = [
    ['Esc, Ctrl-C', 'stops the answer; what you wrote meanwhile is sent next'],
    ['Alt-Enter, Ctrl-J', 'new line; so does \\ at the end of a line'],
    ['Up, Down', 'earlier messages'],
    ['Tab', 'completes commands, names and files'],
    ['Ctrl-C twice', 'leaves'],
  ];
  return renderColumns([...rows, ...keys]);
}

/** Runs a line that begins with a slash; failures are thrown. */
export async function runSlash(line: string, state: ChatState): Promise<void> {
  const [, name = '', rest = ''] = /^\/(\S*)\s*([^]*)$/.exec(line) ?? [];
  const known = name === 'quit' ? 'exit' : name;
  const command = Object.hasOwn(commands, known) ? commands[known] : undefined;
  const { conversation, view } = state;
  if (command === undefined) return view.note(shortHelp(conversation.kept !== undefined));
  if (command.needsKept === true && conversation.kept === undefined) return view.note(`/${known} needs a conversation that is kept.`);
  await command.run(state, rest.trim());
}

/** Completes the names of commands and their arguments. */
export async function completeSlash(before: string, state: ChatState): Promise<readonly string[]> {
  if (!before.startsWith('/') || before.includes('\n')) return [];
  const [, name = '', gap = '', rest = ''] = /^\/(\S*)(\s*)(.*)$/.exec(before) ?? [];
  if (gap === '') {
    const isKept = state.conversation.kept !== undefined;
    return Object.entries(commands)
      .filter(([key, { needsKept }]) => key.startsWith(name) && (isKept || needsKept !== true))
      .map(([key, { complete }]) => `/${key}${complete === undefined ? '' : ' '}`);
  }
  const complete = Object.hasOwn(commands, name) ? commands[name]?.complete : undefined;
  if (complete === undefined) return [];
  try {
    return (await complete(state, rest)).filter((one) => one.startsWith(rest)).map((one) => `/${name} ${one}`);
  } catch {
    // A token that may not list these completes nothing.
    return [];
  }
}

type SessionRow = Result<'session.list'>['sessions'][number];

async function terminalSessions(client: Client): Promise<readonly SessionRow[]> {
  const { sessions } = await client.call('session.list', { kind: 'dm', limit: 200, allAgents: true });
  return sessions.filter(({ sessionKey }) => sessionKey.startsWith(terminalKeys));
}

async function listSessions(state: ChatState): Promise<void> {
  const { client, io, view, conversation } = state;
  const sessions = (await terminalSessions(client)).slice(0, maxListed);
  state.listed = sessions.map(({ conversationRef }) => conversationRef);
  if (sessions.length === 0) return view.note('No conversations yet.');
  const rows = sessions.map(({ title, agentId, updatedAt, messageCount, conversationRef }, at) => [
    `${conversationRef === conversation.kept?.watched.ref ? '*' : ' '}${at + 1}`,
    shorten(title ?? '-', 40),
    agentId,
    renderRelative(updatedAt, io.now()),
    `${messageCount} messages`,
  ]);
  view.note(`${renderColumns(rows)}\n/sessions NUMBER continues one.`);
}

async function openSession(state: ChatState, name: string): Promise<void> {
  const { conversation, view } = state;
  const { kept } = conversation;
  if (kept === undefined) return;
  const listed = /^\d+$/.test(name) ? state.listed[Number(name) - 1] : undefined;
  if (/^\d+$/.test(name) && listed === undefined) return view.note('No such number: /sessions lists the conversations.');
  const before = { name: kept.name, agentId: kept.agentId };
  kept.use(listed ?? name, listed === undefined ? kept.agentId : undefined);
  await kept.open();
  if (kept.watched.ref === undefined && listed === undefined) {
    kept.use(before.name, before.agentId);
    await kept.open();
    return view.note(`No conversation ${plainText(name)}: /sessions lists them.`);
  }
  await showLast(state);
}

/** Shows the last messages of a conversation that is continued. */
export async function showLast({ client, view, conversation }: ChatState): Promise<void> {
  const { kept } = conversation;
  if (kept === undefined || kept.watched.ref === undefined) return;
  const address = { conversationRef: kept.watched.ref };
  const { total, session } = await client.call('session.history', { ...address, limit: 1 });
  const { messages } = await client.call('session.history', { ...address, limit: 6, offset: Math.max(0, total - 6) });
  view.note(`${plainText(session.title ?? kept.name)} (${total} messages)`, 'bold');
  for (const { role, content } of messages) {
    if (content === '' || role === 'tool') continue;
    if (role === 'user') view.note(`> ${shorten(content, 500)}`, 'cyan');
    else {
      const shown = view.answer();
      shown.add(content);
      shown.end();
    }
  }
}

async function find(state: ChatState, query: string): Promise<void> {
  const { client, io, view } = state;
  if (query === '') return view.note('/find needs words.');
  const found = await client.call('session.search', { query, limit: 8 });
  const results = found.mode === 'search' ? found.results : [];
  if (results.length === 0) return view.note('No message contains all terms.');
  state.listed = results.map(({ conversationRef }) => conversationRef);
  const texts = results.map(
    ({ title, snippet, role, timestamp }, at) =>
      `${at + 1}  ${plainText(title ?? '-')}, ${renderRelative(timestamp, io.now())}\n   ${role}: ${plainText(snippet)}`,
  );
  view.note(`${texts.join('\n')}\n/sessions NUMBER continues one.`);
}

async function chooseAgent({ client, view, conversation, stateless }: ChatState, name: string): Promise<void> {
  const { agents } = await client.call('agents.list', {});
  if (name === '') return view.note(agents.map((id) => (conversation.model === `agent/${id}` ? `* ${id}` : `  ${id}`)).join('\n'));
  if (!agents.includes(name)) return view.note(`No agent ${plainText(name)}: ${agents.join(', ')}.`);
  if (stateless !== undefined) stateless.model = `agent/${name}`;
  const { kept } = conversation;
  if (kept !== undefined) {
    kept.use(`${terminalKeys}chat`, name);
    await kept.open();
  }
  view.note(`Chatting with ${name} now.`);
}

async function chooseModel({ client, view, conversation, stateless }: ChatState, name: string): Promise<void> {
  const { kept } = conversation;
  if (name === '') {
    const current = kept === undefined ? conversation.model : (await client.call('agents.get', { agentId: kept.agentId })).config.model;
    const names = await modelNames(client);
    return view.note(names.map((one) => (one === current ? `* ${one}` : `  ${one}`)).join('\n'));
  }
  if (stateless !== undefined) stateless.model = name;
  // An agent has one model: the change holds for all of its conversations.
  if (kept !== undefined) await client.call('agents.update', { agentId: kept.agentId, config: { model: name } });
  view.note(kept === undefined ? `${name} answers now.` : `Agent ${kept.agentId} uses ${name} now, in all of its conversations.`);
}

async function modelNames(client: Client): Promise<readonly string[]> {
  const listed = await client.call('models.list', {});
  return 'providers' in listed ? listed.providers.flatMap(({ name, models }) => models.map(({ modelId }) => `${name}/${modelId}`)) : [];
}

async function attach(state: ChatState, file: string): Promise<void> {
  const { client, io, view, attachments } = state;
  if (file === '') return view.note('/attach needs a file.');
  const path = inHome(file, io);
  const { mediaId } = await client.upload(await openFile(path), { fileName: basename(path) });
  attachments.push({ mediaId, name: basename(path) });
  view.note(`Attached to the next message: ${attachments.map(({ name }) => plainText(name)).join(', ')}`);
}

async function showCost({ client, view, conversation, tokens }: ChatState): Promise<void> {
  const { kept } = conversation;
  if (kept === undefined) return view.note(`${tokens} tokens in this chat.`);
  const { tokensUsed, model } = await client.call('session.status', kept.address);
  view.note(
    `${tokensUsed.totalTokens} tokens, $${tokensUsed.totalCost.toFixed(4)} in this conversation, ${tokens} tokens in this chat. Model: ${plainText(model)}`,
  );
}

async function mark({ view, conversation }: ChatState, rating: 'good' | 'bad', note: string): Promise<void> {
  await conversation.kept?.mark(rating, note === '' ? undefined : note);
  view.note(`Marked as ${rating}.`);
}

function inHome(file: string, { userHome, workingDir }: Io): string {
  return file.startsWith('~/') ? join(userHome, file.slice(2)) : resolve(workingDir, file);
}

async function completeFile(io: Io, typed: string): Promise<readonly string[]> {
  const folder = typed.endsWith('/') ? typed : dirname(typed) === '.' && !typed.startsWith('./') ? '' : `${dirname(typed)}/`;
  const entries = await readdir(inHome(folder === '' ? '.' : folder, io), { withFileTypes: true });
  return entries
    .filter(({ name }) => !name.startsWith('.') || basename(typed).startsWith('.'))
    .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? sep : ''}`);
}
