import type { WorkHandler, WorkLimits } from '../../unattended/durable/api.ts';
import { type CommandDeps, commandIn, runCommand } from './commands.ts';
import type { RefusalOf } from './refusal.ts';
import { callOf, MessageWork, messageTo, type RunMessageDeps } from './run-message.ts';

/** Commands run at once, whatever runs in their conversation: they have separate slots. */
export const commandLimits: WorkLimits = { concurrency: 16, maxAttempts: 3, handlesSuspension: true };

/** Carries out commands of people in chats, and replies. */
export function createRunCommand(deps: CommandDeps & Pick<RunMessageDeps, 'delivery'>, refusalOf: RefusalOf): WorkHandler {
  return async (item, signal) => {
    const work = MessageWork().parse(item.payload);
    const command = commandIn(work.text);
    if (command === undefined || (await refusalOf(work)) !== undefined) return { state: 'done' };
    const text = await runCommand(command, work, callOf(work, item, signal), deps);
    if (text !== undefined) await deps.delivery.send(messageTo(item, work, text, null));
    return { state: 'done' };
  };
}
