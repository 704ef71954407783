import { FinishReason, PrintedSessionKey, TokensUsed } from '@gatehouse/contract';
import * as z from 'zod';
import type { Agent, AgentsApi } from '../../features/agents/agents/api.ts';
import type { ConversationAddress, SessionsApi } from '../../features/conversations/sessions/api.ts';
import type { TurnsApi } from '../../features/conversations/turns/api.ts';
import type { CallContext, Identity } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import { parseInput } from '../parse-input.ts';
import { failureOf } from '../routes/api-chat-result.ts';
import type { McpTool } from './offer.ts';
import { TurnReport } from './turn-progress.ts';

/** Without shared definitions: not every client follows references in a schema. */
const Arguments = z.strictObject({
  message: z.string().min(1).describe('What to say to the agent.'),
  sessionKey: z
    .string()
    .refine(
      (key) => PrintedSessionKey.safeParse(key).success,
      'expected userId:channelId, userId:channelId:peerId or userId:channelId:peerId:threadId',
    )
    .optional()
    .describe('The conversation to continue, as userId:channelId[:peerId]; it belongs to your token. Calls without it share one conversation.'),
});

const Answer = z.strictObject({
  response: z.string(),
  conversationRef: z.string(),
  sessionKey: z.string(),
  finishReason: z.enum(FinishReason.options),
  tokensUsed: z.strictObject(TokensUsed.shape),
});

const JsonSchema = z.looseObject({ type: z.literal('object'), properties: z.record(z.string(), z.json()), required: z.array(z.string()) });

export interface AgentToolsDeps {
  readonly agents: AgentsApi;
  readonly turns: TurnsApi;
  readonly sessions: Pick<SessionsApi, 'target'>;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Fails while new work is refused. */
  readonly refuseOverload: () => void;
}

/** Returns the agents that a caller may reach. */
export function agentsOf({ list }: AgentsApi, { agents: allowed }: Identity): readonly Agent[] {
  return allowed === undefined ? list() : list().filter(({ id }) => allowed.includes(id));
}

/** Creates a tool `agent_<id>` for each agent of the caller: one turn of origin `mcp` in a separate conversation. */
export function createAgentTools(deps: AgentToolsDeps): (identity: Identity) => readonly McpTool[] {
  const inputSchema = schemaOf(Arguments, 'input');
  const outputSchema = schemaOf(Answer, 'output');

  async function run(agentId: string, args: unknown, call: CallContext, onProgress: Parameters<McpTool['run']>[2]) {
    deps.refuseOverload();
    const { message, sessionKey } = parseInput(Arguments, args);
    const address: ConversationAddress = { agentId, sessionKey: sessionKey ?? { userId: call.identity.tokenId, channelId: 'mcp' } };
    const { ref } = await deps.sessions.target(address, call);
    using report = onProgress === undefined ? undefined : new TurnReport({ ...deps, conversationRef: ref, onProgress });
    const outcome = await deps.turns.execute({ message, address, origin: 'mcp' }, call, report?.sink);
    const failure = failureOf(outcome);
    if (failure !== undefined && outcome.text === '') throw failure;
    const { text, conversationRef, finishReason, tokensUsed } = outcome;
    const structuredContent: z.output<typeof Answer> = { response: text, conversationRef, sessionKey: outcome.sessionKey, finishReason, tokensUsed };
    const said = { type: 'text' as const, text };
    if (failure === undefined) return { content: [said], structuredContent };
    // The partial answer is kept, marked as an error so that nobody takes it for the whole.
    return { isError: true, content: [said, { type: 'text' as const, text: `${failure.code}: ${failure.message}` }], structuredContent };
  }

  return (identity) =>
    agentsOf(deps.agents, identity).map(({ id, config }) => ({
      about: {
        name: `agent_${id}`,
        title: config.name,
        description: `Sends a message to the agent ${config.name} (${id}) and returns its answer. The agent keeps the conversation and may use its tools, so a call can take minutes.`,
        inputSchema,
        outputSchema,
        annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
      },
      run: (args, call, onProgress) => run(id, args, call, onProgress),
    }));
}

function schemaOf(schema: z.ZodObject, io: 'input' | 'output') {
  return JsonSchema.parse(z.toJSONSchema(schema, { io }));
}
