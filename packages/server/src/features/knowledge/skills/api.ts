import type { TurnOrigin } from '@gatehouse/contract';
import type { Tool } from '../../../runtime/tool.ts';
import type { TurnResult } from '../../../runtime/turn.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** Skill texts for one question, and the turn to book them on. */
export interface InjectedSkills {
  /** Placed before the question, for this call alone. */
  readonly text: string;
  readonly names: readonly string[];
  /** Time of the monotonic clock. */
  readonly startedAt: number;
}

/** Skills for turns: all of it from memory, without waiting. */
export interface SkillsApi {
  /** Returns the list of an agent's skills for its system prompt: the same string until something changed, undefined when there is none. */
  promptPart(agent: Agent): string | undefined;
  /** Returns skills that fit a question, or that it calls by `/name`; `room` is the token budget for messages. */
  inject(about: { readonly agent: Agent; readonly question: string; readonly origin: TurnOrigin; readonly room: number }): InjectedSkills | undefined;
  /** The tool `skill`, while any agent has a skill; the same list until that changes. */
  tools(): readonly Tool[];
  /** Books the end of a turn on the skills that it used; costs nothing without any. */
  ended(
    turn: { readonly agentId: string; readonly turnId: string; readonly principalId: string; readonly injected: InjectedSkills | undefined },
    end: Pick<TurnResult, 'finishReason' | 'failure'>,
  ): void;
}
