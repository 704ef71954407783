import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import { refuseWithout } from '../../../../kernel/jail.ts';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import { belongingOf } from '../background-command.ts';
import { commandOf, outsideOf, type ShellDeps, specOf } from '../command.ts';
import { keyNames } from './keys.ts';
import type { Awaited, TerminalSession, WaitEnd } from './session.ts';
import type { Terminals } from './terminals.ts';

export const terminalToolName = 'terminal';

const maxWaitMs = 3_600_000;
/** Longer than any wait, which ends on its own. */
const graceMs = 30_000;
const settleMs = 300;
const maxSettleMs = 3_000;
const defaultWaitMs = 30_000;
const maxTextBytes = 40_000;
const maxArgumentBytes = 32 * 1024;

const word = once(() =>
  z
    .string()
    .max(16_384)
    .refine((text) => !text.includes('\0'), 'expected no NUL character'),
);
const terminalArgs = once(() =>
  z.strictObject({
    action: z.enum(['open', 'type', 'press', 'read', 'wait', 'resize', 'close', 'list']),
    id: z.string().min(1).max(64).optional().describe('Id of the session, from "open" or "list"; required except for these.'),
    argv: z
      .tuple([word().min(1)], word())
      .refine((words) => words.length <= 128, 'expected at most 128 words')
      .optional()
      .describe('open: program and arguments, one by one, e.g. ["python3"] or ["bash"]. No shell reads them.'),
    cwd: z.string().max(1024).optional().describe('open: folder to run in, relative to the workspace; the workspace itself otherwise.'),
    network: z.boolean().default(false).describe('open: requests the network. Off unless the agent may use it.'),
    cols: z.int().min(20).max(250).optional().describe('open, resize: width in characters; 80 by default.'),
    rows: z.int().min(5).max(100).optional().describe('open, resize: height in lines; 24 by default.'),
    text: z.string().max(16_384).optional().describe('type: text to type as it is; it does not press Enter.'),
    enter: z.boolean().default(false).describe('type: presses Enter after the text.'),
    keys: z.array(z.string().min(1).max(20)).min(1).max(64).optional().describe(`press: keys in their order: ${keyNames}.`),
    pattern: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe(
        'open, type, press, wait: waits until this regular expression matches what appeared since your last input, e.g. ">>> $" for the next prompt. ^ and $ match at line ends.',
      ),
    exit: z.boolean().default(false).describe('wait: waits until the program has ended.'),
    quietMs: z.int().min(50).max(60_000).optional().describe('wait: waits until nothing has changed for so many milliseconds; 1000 by default.'),
    timeoutMs: z.int().min(0).max(maxWaitMs).optional().describe(`Milliseconds to wait at most; ${defaultWaitMs} by default.`),
    history: z.int().min(0).max(500).default(0).describe('read: lines above the screen to include.'),
  }),
);
type TerminalArgs = z.output<ReturnType<typeof terminalArgs>>;

const inputs: ReadonlySet<TerminalArgs['action']> = new Set(['open', 'type', 'press']);

/** Creates the tool with which an agent drives programs on a terminal. */
export function createTerminalTool(deps: ShellDeps, terminals: Terminals): Tool<ReturnType<typeof terminalArgs>> {
  return {
    name: terminalToolName,
    description:
      'Drives an interactive program (a REPL, a shell, an editor, an installer) on a terminal in the same sandbox as "exec". "open" starts it; "type", "press" and "wait" return the screen as text. Give a pattern to wait for the answer instead of guessing how long it takes. Sessions outlive the turn: close those that you no longer need.',
    get args() {
      return terminalArgs();
    },
    risk: 'write',
    effect: 'once',
    readsPrivate: true,
    promotable: true,
    timeoutMs: maxWaitMs + graceMs,
    // What is typed may be a line for a shell.
    runsPrograms: ({ action }) => inputs.has(action),
    onlyReads: ({ action }) => action === 'read' || action === 'wait' || action === 'list',
    mustAsk: ({ action, id, network }) =>
      inputs.has(action) && (network || (id !== undefined && terminals.isNetworked(id)))
        ? 'the program reaches the network: what it reads can leave the machine'
        : undefined,
    describe,
    onPromoted: ({ agentId }) => terminals.promoted(agentId),
    async run(args, context) {
      if (args.action === 'list') return list(terminals, context);
      if (args.action === 'open') return open(deps, terminals, args, context);
      if (args.id === undefined) throw missing('id', 'the id of a session', args.action);
      const session = terminals.find(context, args.id);
      switch (args.action) {
        case 'type':
        case 'press':
          if (terminals.wasEvicted(session.id)) return { ...(await screenOf(terminals, session, args)), isError: true };
          return input(terminals, session, args, context);
        case 'resize':
          await session.resize({ cols: args.cols ?? session.size.cols, rows: args.rows ?? session.size.rows });
          return screenOf(terminals, session, args);
        case 'read':
          return screenOf(terminals, session, args);
        case 'wait':
          return waited(terminals, session, args, context, {
            awaited: args.pattern !== undefined ? { pattern: args.pattern } : args.exit ? 'exit' : { quietMs: args.quietMs ?? 1_000 },
            timeoutMs: args.timeoutMs ?? defaultWaitMs,
          });
        case 'close':
          session.kill();
          await session.done;
          return screenOf(terminals, session, args);
      }
    },
  };
}

async function input(terminals: Terminals, session: TerminalSession, args: TerminalArgs, context: ToolContext): Promise<ToolResult> {
  assertExpression(args.pattern);
  const tainted = context.tainted();
  if (args.action === 'type') {
    if (args.text === undefined) throw missing('text', 'the text to type', args.action);
    await session.type(`${args.text.replaceAll(/\r?\n/g, '\r')}${args.enter ? '\r' : ''}`, { tainted });
  } else {
    if (args.keys === undefined) throw missing('keys', 'the keys to press', args.action);
    await session.press(args.keys, { tainted });
  }
  return settled(terminals, session, args, context);
}

const missing = (param: string, what: string, action: string) =>
  new AppError('invalid_params', `${param}: expected ${what} for "${action}"`, { param });

function describe({ action, id, argv, cwd, network, text, enter, keys }: TerminalArgs): string {
  if (action === 'open' && argv !== undefined) {
    const notes = `${cwd === undefined ? '' : ` in ${cwd.slice(0, 60)}`}${network ? ' with network' : ''} on a terminal`;
    return `${commandOf(argv).slice(0, 200 - notes.length)}${notes}`;
  }
  const what =
    action === 'type' ? ` ${JSON.stringify(text ?? '')}${enter ? ' and Enter' : ''}` : action === 'press' ? ` ${keys?.join(' ') ?? ''}` : '';
  return `${action}${what.slice(0, 140)}${id === undefined ? '' : ` in ${id}`}`;
}

async function open(deps: ShellDeps, terminals: Terminals, args: TerminalArgs, context: ToolContext): Promise<ToolResult> {
  const { argv } = args;
  if (argv === undefined) throw missing('argv', 'the program and its arguments', 'open');
  const agent = deps.agentOf(context.agentId);
  if (agent === undefined) throw new AppError('not_found', 'This agent no longer exists');
  if (args.network && !agent.exec.network)
    throw new AppError('denied', 'This agent may not use the network in commands (agents.<id>.exec.network): open it without');
  if (argv.reduce((sum, each) => sum + Buffer.byteLength(each) + 1, 0) > maxArgumentBytes)
    throw new AppError('payload_too_large', `argv: expected at most ${maxArgumentBytes} bytes together`, { param: 'argv' });
  assertExpression(args.pattern);
  terminals.assertFree(context.agentId);
  const opened = await deps.jail();
  refuseWithout(opened);
  await deps.capacity.assertCapacity(context.workspaceDir, { files: 1 });
  const jail = deps.capacity.watched(opened, context.workspaceDir);
  const spec = await specOf(deps, agent, { argv, cwd: args.cwd, network: args.network }, context);
  let session: TerminalSession;
  try {
    if (context.signal.aborted) throw new AppError('cancelled', 'The call was stopped before the program started');
    const turn = context.call.agentCaller?.turn;
    if (turn !== undefined && deps.isStopped(turn)) throw new AppError('cancelled', 'The run was stopped before the program started');
    const { turnId, traceId, sessionKey } = context;
    session = terminals.open(jail, spec, {
      owner: { ...belongingOf(context), turnId, traceId, sessionKey },
      size: { cols: args.cols ?? 80, rows: args.rows ?? 24 },
      commandLine: commandOf(argv).slice(0, 200),
    });
  } catch (error) {
    await spec.taint.end();
    throw error;
  }
  return settled(terminals, session, args, context);
}

/** Waits for the pattern of a call, or until its output has settled. */
function settled(terminals: Terminals, session: TerminalSession, args: TerminalArgs, context: ToolContext): Promise<ToolResult> {
  const { pattern, timeoutMs } = args;
  return waited(terminals, session, args, context, {
    awaited: pattern === undefined ? { quietMs: settleMs } : { pattern },
    timeoutMs: timeoutMs ?? (pattern === undefined ? maxSettleMs : defaultWaitMs),
  });
}

async function waited(
  terminals: Terminals,
  session: TerminalSession,
  args: TerminalArgs,
  { signal }: ToolContext,
  { awaited, timeoutMs }: { readonly awaited: Awaited; readonly timeoutMs: number },
): Promise<ToolResult> {
  assertExpression(args.pattern);
  const end = await session.wait(awaited, { timeoutMs, signal });
  return screenOf(terminals, session, args, args.action === 'wait' || args.pattern !== undefined ? noteOf(end, timeoutMs) : '');
}

function assertExpression(pattern: string | undefined): void {
  if (pattern === undefined) return;
  try {
    new RegExp(pattern, 'mu');
  } catch (error) {
    throw new AppError('invalid_params', `pattern: expected a regular expression: ${error instanceof Error ? error.message : 'it is not valid'}`, {
      param: 'pattern',
    });
  }
}

const notes: Readonly<Record<WaitEnd, (timeoutMs: number) => string>> = {
  found: () => '; the pattern matched',
  quiet: () => '; nothing changes',
  ended: () => '',
  stopped: () => '; the wait was stopped',
  timeout: (timeoutMs) => `; not reached within ${timeoutMs} ms`,
};
const noteOf = (end: WaitEnd, timeoutMs: number) => notes[end](timeoutMs);

async function screenOf(terminals: Terminals, session: TerminalSession, { action, history }: TerminalArgs, note = ''): Promise<ToolResult> {
  const { lines, cursor, isFullScreen } = await session.read(history);
  const { cols, rows } = session.size;
  const isEvicted = terminals.wasEvicted(session.id);
  const why = isEvicted ? ', because nobody used it' : '';
  const place = session.isRunning ? `, cursor on line ${cursor.line + 1} column ${cursor.col + 1}` : '';
  const kind = isFullScreen ? ' full screen' : '';
  const text = lines.join('\n');
  const shown = text.length > maxTextBytes ? `[… ${text.length - maxTextBytes} characters left out …]\n${text.slice(-maxTextBytes)}` : text;
  return {
    content: `[${session.id}: ${session.state}${why}, ${cols}x${rows}${kind}${place}${note}]\n${shown.trim() === '' ? '(empty screen)' : shown}`,
    outside: outsideOf(session.spec),
    ...(action === 'open' && session.isMissing && { isError: true }),
    traced: {
      ...(action === 'open' && session.isMissing && { errorKind: 'missing_dependency' }),
      facts: { action, terminalId: session.id, isOpen: session.isRunning, ...(isEvicted && { isEvicted }) },
    },
  };
}

function list(terminals: Terminals, context: ToolContext): ToolResult {
  const own = terminals.list(context);
  return {
    content:
      own.length === 0
        ? '(no terminal sessions)'
        : own.map(({ id, state, commandLine, size }) => `${id}: ${state}, ${size.cols}x${size.rows}: ${commandLine}`).join('\n'),
    outside: { source: 'command output', clean: own.every(({ spec }) => spec.taint.isClean()) },
  };
}
