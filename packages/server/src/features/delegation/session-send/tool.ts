import { ConversationRef, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool } from '../../../runtime/tool.ts';
import type { SessionSend } from './session-send.ts';

const longestWaitMs = 300_000;
const Args = once(() =>
  z.strictObject({
    conversationRef: ConversationRef.describe('As returned by sessions_list or sessions_spawn.'),
    text: z.string().min(1).max(100_000),
    mode: z
      .enum(['fire-and-forget', 'wait', 'ping-pong'])
      .default('fire-and-forget')
      .describe('`wait` returns the answer; with `ping-pong` answers are exchanged after your turn has ended.'),
    timeoutMs: z.int().min(1000).max(longestWaitMs).default(60_000).describe('Timeout of `wait`.'),
    maxTurns: z.int().min(0).max(5).optional().describe('Maximum answers sent back in `ping-pong`.'),
  }),
);

/** `sessions_send`: the method `session.send` for agents. */
export function createSendTool(
  send: SessionSend['methods']['session.send'],
  isTainted: (refs: readonly string[]) => Promise<boolean>,
): Tool<ReturnType<typeof Args>> {
  return {
    name: 'sessions_send',
    description: 'Sends a message to another conversation of yours, or to a sub-agent that you started.',
    get args() {
      return Args();
    },
    risk: 'write',
    effect: 'once',
    capability: 'orch:message',
    timeoutMs: longestWaitMs + 5_000,
    describe: ({ conversationRef, mode }) => `send a message to conversation ${conversationRef}${mode === 'wait' ? ' and wait for the answer' : ''}`,
    async run(args, { call }) {
      const { mode, response, agentId, conversationRef } = await send(args, call);
      if (mode !== 'wait')
        return {
          content: `Sent to agent ${agentId}.${mode === 'ping-pong' ? ' Answers are delivered to this conversation once your turn has ended.' : ''}`,
        };
      return { content: response ?? '', outside: { source: 'conversation', clean: !(await isTainted([conversationRef])) } };
    },
  };
}
