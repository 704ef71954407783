import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { type Jail, refuseWithout } from '../../../kernel/jail.ts';
import { settledWithin } from '../../../kernel/timers.ts';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { belongingOf } from './background-command.ts';
import type { BackgroundCommands } from './background-commands.ts';
import { commandOf, type CommandSpec, describeEnd, outsideOf, type ShellDeps, specOf } from './command.ts';
import { collect, Ends, toText } from './output.ts';

const maxTimeoutMs = 300_000;
/** Longer than any call: the tool stops its command on its own and reports the output so far. */
const graceMs = 10_000;
const maxOutputBytes = 8 * 1024 * 1024;
const maxArgumentBytes = 96 * 1024;
/** How long output may still arrive after all processes have exited. */
const drainMs = 2000;
/** Programs that write nothing. No shell reads their arguments, and nothing can shadow them on the PATH of the jail. */
const freeing: ReadonlySet<string> = new Set(['rm', 'chmod']);

const word = once(() =>
  z
    .string()
    .max(32_768)
    .refine((text) => !text.includes('\0'), 'expected no NUL character'),
);
const execArgs = once(() =>
  z.strictObject({
    argv: z
      .tuple([word().min(1)], word())
      .refine((words) => words.length <= 256, 'expected at most 256 words')
      .describe('Program and arguments, one by one. No shell reads them: for pipes, wildcards or several commands use ["sh", "-c", "…"].'),
    cwd: z
      .string()
      .max(1024)
      .optional()
      .describe('Folder to run in, relative to the workspace, e.g. "projects/app"; the workspace itself otherwise.'),
    timeoutMs: z.int().min(100).max(maxTimeoutMs).default(30_000).describe('Stops the command after so many milliseconds.'),
    network: z.boolean().default(false).describe('Requests the network. Off unless the agent may use it.'),
    stdin: z.string().max(1_048_576).optional().describe('Text for its standard input.'),
    background: z.boolean().default(false).describe('Returns an id for the tool "process" at once; timeoutMs does not apply then.'),
  }),
);
type ExecArgs = z.output<ReturnType<typeof execArgs>>;

/** Creates the tool that runs a program in the jail of the agent's workspace. */
export function createExecTool(deps: ShellDeps, background: BackgroundCommands): Tool<ReturnType<typeof execArgs>> {
  return {
    name: 'exec',
    description:
      'Runs a program in a sandbox that sees only the workspace at /workspace and the programs of the system. Folders of the workspace can be written to, except skills and hidden ones; files directly in it cannot: use the file tools for these. /tmp lasts for one call. Returns the exit code and the output.',
    get args() {
      return execArgs();
    },
    risk: 'write',
    effect: 'once',
    readsPrivate: true,
    promotable: true,
    runsPrograms: () => true,
    timeoutMs: maxTimeoutMs + graceMs,
    mustAsk: ({ network }) => (network ? 'the command reaches the network: what it reads can leave the machine' : undefined),
    describe({ argv, cwd, network, background: behind }) {
      const notes = [network ? ' with network' : '', behind ? ' in the background' : ''].join('');
      const command = commandOf(argv);
      const where = cwd === undefined ? '' : ` in ${cwd.slice(0, 60)}`;
      return `${command.slice(0, 200 - where.length - notes.length)}${where}${notes}`;
    },
    async run(args, context) {
      const agent = deps.agentOf(context.agentId);
      if (agent === undefined) throw new AppError('not_found', 'This agent no longer exists');
      if (args.network && !agent.exec.network)
        throw new AppError('denied', 'This agent may not use the network in commands (agents.<id>.exec.network): run it without');
      if (args.argv.reduce((sum, each) => sum + Buffer.byteLength(each) + 1, 0) > maxArgumentBytes)
        throw new AppError('payload_too_large', `argv: expected at most ${maxArgumentBytes} bytes together; pass longer text by stdin`, {
          param: 'argv',
        });
      const opened = await deps.jail();
      refuseWithout(opened);
      // Commands that free space run in a full workspace too.
      const isFreeing = freeing.has(args.argv[0]);
      if (!isFreeing) await deps.capacity.assertCapacity(context.workspaceDir, { files: 1 });
      const jail = isFreeing ? opened : deps.capacity.watched(opened, context.workspaceDir);
      const spec = await specOf(deps, agent, args, context);
      let isLeft = false;
      try {
        if (context.signal.aborted) throw new AppError('cancelled', 'The call was stopped before the command started');
        const turn = context.call.agentCaller?.turn;
        if (args.background && turn !== undefined && deps.isStopped(turn))
          throw new AppError('cancelled', 'The run was stopped before the command started');
        if (!args.background) return await runToEnd(deps.clock, jail, spec, args, context);
        const begun = background.begin(jail, spec, { stdin: args.stdin, owner: belongingOf(context) });
        isLeft = true;
        return begun;
      } finally {
        // A background command disposes of it on its own.
        if (!isLeft) await spec.taint.end();
      }
    },
  };
}

async function runToEnd(
  clock: Clock,
  jail: Jail,
  spec: CommandSpec,
  args: ExecArgs,
  { signal, onOutput }: Pick<ToolContext, 'signal' | 'onOutput'>,
): Promise<ToolResult> {
  const startedMs = clock.monotonic();
  const started = jail.run(spec);
  let stopped: string | undefined;
  const stop = (why: string) => {
    stopped ??= why;
    started.kill();
  };
  const output = new Ends();
  const bounded = {
    push(chunk: Buffer) {
      output.push(chunk);
      onOutput?.(toText(chunk));
      if (output.total > maxOutputBytes) stop(`stopped: it wrote more than ${maxOutputBytes / 1024 / 1024} MiB`);
    },
  };
  const drained = collect([started.stdout, started.stderr], bounded, clock);
  const cancel = clock.after(args.timeoutMs, () => stop(`stopped: it did not end within ${args.timeoutMs} ms`));
  const onAbort = () => stop('stopped: the call was cancelled');
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    started.stdin.end(args.stdin ?? '');
    const end = await started.ended;
    await settledWithin(clock, drainMs, [drained]);
    started.stdout.destroy();
    started.stderr.destroy();
    const how = stopped === undefined ? describeEnd(end, spec.limits) : `${stopped} (with everything it started)`;
    const seconds = ((clock.monotonic() - startedMs) / 1000).toFixed(1);
    const text = output.text();
    return {
      content: `[${how}, ${seconds} s]\n${text === '' ? '(no output)' : text}`,
      outside: outsideOf(spec),
      ...((stopped !== undefined || end.code !== 0) && { isError: true, traced: tracedEnd(end.code, text) }),
    };
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Exit code of a shell that did not find a program. */
const notFoundCode = 127;
/** Texts with which interpreters and the loader report what is not installed. */
const missingModule =
  /Cannot find (?:module|package) ['"]|No module named |ERR_MODULE_NOT_FOUND|error while loading shared libraries: |package \S+ is not in (?:GOROOT|std)/u;

function tracedEnd(code: number | null, output: string): NonNullable<ToolResult['traced']> {
  const isMissing = code === notFoundCode || (code !== 0 && missingModule.test(output));
  return { ...(isMissing && { errorKind: 'missing_dependency' }), ...(code !== null && { facts: { exitCode: code } }) };
}
