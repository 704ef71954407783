import { AppError } from '../../../../kernel/app-error.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { PictureReader, ReadingCall } from '../../documents/api.ts';
import type { VisionConfig } from '../config.ts';
import { isVisionAllowed } from './scope-rules.ts';
import type { Vision } from './vision.ts';

interface PictureReaderDeps {
  readonly vision: Vision;
  readonly config: Live<VisionConfig>;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly defaultAgentOf: (call: CallContext) => string;
}

const prompts = {
  page: 'Write down the whole text of this scanned page, in reading order and in its own language, tables as Markdown tables. Add nothing. If it has no text, say in one sentence what it shows.',
  image: 'Write down all text in this image, in reading order, tables as Markdown tables; then say in a few sentences what else it shows.',
};
const pageTokens = 4096;

/** Reads pictures in documents with the models of `media.vision`. */
export function createPictureReader({ vision, config, agents, defaultAgentOf }: PictureReaderDeps): PictureReader {
  /** Returns the agent that pays; undefined for one that is suspended or gone. */
  function agentOf(call: ReadingCall): Agent | undefined {
    const agentId = call.agentCaller?.agentId ?? call.agentId ?? defaultAgentOf(toContext(call));
    const agent = agents.find(agentId);
    return agent?.suspended === false ? agent : undefined;
  }
  return {
    canRead(call) {
      const { enabled, scopeRules } = config.current;
      const agent = enabled && isVisionAllowed(scopeRules, call) ? agentOf(call) : undefined;
      return agent !== undefined && vision.seeing(agent, undefined).length > 0;
    },
    async read(bytes, what, call) {
      const agent = agentOf(call);
      // No text would count as that of the page.
      if (agent === undefined) throw new AppError('precondition_failed', 'The agent was suspended or deleted');
      const asked = { agentId: agent.id, conversationRef: call.agentCaller?.conversationRef, call: toContext(call), signal: call.signal };
      const { description } = await vision.describe(agent, { bytes, prompt: prompts[what], param: 'file', atLeastTokens: pageTokens }, asked);
      return description;
    },
  };
}

/** A call of the daemon itself has neither trace nor transport. */
const toContext = (call: ReadingCall): CallContext => ({ traceId: '', requestId: '', transport: 'process', ...call });
