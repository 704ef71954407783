import { once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { BackgroundCommands } from './background-commands.ts';

const maxWaitMs = 30_000;

const processArgs = once(() =>
  z.strictObject({
    action: z.enum(['list', 'read', 'write', 'kill']),
    id: z.string().min(1).max(64).optional().describe('Id of the command, from "exec" or "list"; required except for "list".'),
    offset: z.int().min(0).default(0).describe('read: byte of the output to start at, the "next offset" of the previous read.'),
    waitMs: z.int().min(0).max(maxWaitMs).default(0).describe('read: how long to wait for output when there is none yet, in milliseconds.'),
    input: z.string().max(262_144).default('').describe('write: text for its standard input; a line needs its line break.'),
    close: z.boolean().default(false).describe('write: closes its standard input after the text.'),
  }),
);

/** Creates the tool for commands that `exec` started in the background. */
export function createProcessTool(background: BackgroundCommands): Tool<ReturnType<typeof processArgs>> {
  return {
    name: 'process',
    description: 'Lists, reads, writes to and stops commands that "exec" started in the background.',
    get args() {
      return processArgs();
    },
    risk: 'write',
    effect: 'once',
    readsPrivate: true,
    timeoutMs: maxWaitMs + 5000,
    // The input may be a line for a shell.
    runsPrograms: ({ action }) => action === 'write',
    onlyReads: ({ action }) => action === 'list' || action === 'read',
    describe: ({ action, id }) => (id === undefined ? action : `${action} ${id}`),
    async run({ action, id, offset, waitMs, input, close }, context) {
      if (action === 'list') return background.list(context);
      if (id === undefined) throw new AppError('invalid_params', `id: expected the id of a command for "${action}"`, { param: 'id' });
      const command = background.find(context, id);
      if (action === 'read') return command.read({ offset, waitMs, signal: context.signal });
      return action === 'write' ? command.write(input, { close, tainted: context.tainted() }) : command.kill();
    },
  };
}
