import type { TurnOrigin } from '@gatehouse/contract';
import type { Tool } from '../../../runtime/tool.ts';
import type { TurnResult } from '../../../runtime/turn.ts';
import type { Agent } from '../../agents/agents/api.ts';

/** Texts of skills for one question, and whose turn they are to be booked on. */
export interface InjectedSkills {
  /** In front of the question, for this call alone. */
  readonly text: string;
  readonly names: readonly string[];
  /** Of the clock that never steps. */
  readonly startedAt: number;
}

/** Skills for turns: all of it from memory, without waiting. */
export interface SkillsApi {
  /** The list of an agent's skills for its system prompt: the same string until something changed, undefined when there is none. */
  promptPart(agent: Agent): string | undefined;
  /** What fits a question, or what the question calls by `/name`; `room` is the tokens that messages may have. */
  inject(about: { readonly agent: Agent; readonly question: string; readonly origin: TurnOrigin; readonly room: number }): InjectedSkills | undefined;
  /** The tool `skill`, while any agent has a skill; the same list until that changes. */
  tools(): readonly Tool[];
  /** Books the end of a turn on the skills that it used; costs nothing without any. */
  ended(
    turn: { readonly agentId: string; readonly turnId: string; readonly principalId: string; readonly injected: InjectedSkills | undefined },
    end: Pick<TurnResult, 'finishReason' | 'failure'>,
  ): void;
}
