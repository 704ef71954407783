import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import { tailOf } from '../../../../../kernel/cut-text.ts';
import { countTokens } from '../../../../../llm/count-tokens.ts';
import type { SessionsApi } from '../../../../conversations/sessions/api.ts';
import type { AgentToAgentConfig } from '../../config.ts';
import type { Live } from '../../../../../kernel/config/live.ts';

export interface SaidDeps {
  readonly config: Live<AgentToAgentConfig>;
  readonly sessions: Pick<SessionsApi, 'said'>;
}

const saidMessages = 40;
const noHistory = () => ({ messages: [], total: 0 });

/** Returns the latest messages of the requesting conversation, as many as fit. */
export async function saidBefore(
  { config, sessions }: SaidDeps,
  wanted: Params<'session.spawn'>['includeParentHistory'],
  call: CallContext,
): Promise<string | undefined> {
  const { includeParentHistory, parentSummaryMaxTokens } = config.current.subagentContext;
  const conversationRef = call.agentCaller?.conversationRef;
  if (wanted === 'summary' && conversationRef === undefined)
    throw new AppError(
      'invalid_params',
      'includeParentHistory: only an agent has a parent conversation; put what the sub-agent must know into task',
      {
        param: 'includeParentHistory',
      },
    );
  if ((wanted ?? includeParentHistory) === 'none' || conversationRef === undefined) return undefined;
  const said = (offset: number, limit: number) => sessions.said({ conversationRef, offset, limit }, call).catch(noHistory);
  const { total } = await said(0, 1);
  const { messages } = await said(Math.max(0, total - saidMessages), saidMessages);
  let text = messages.map(({ role, content }) => `${role}: ${content}`).join('\n\n');
  while (countTokens(text) > parentSummaryMaxTokens) text = tailOf(text, Math.floor(text.length * 0.8));
  return text === '' ? undefined : text;
}
