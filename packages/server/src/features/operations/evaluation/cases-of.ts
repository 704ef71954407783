import type { EvalCase } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { PastTurn, SessionsApi } from '../../conversations/sessions/api.ts';
import type { FindTurn } from './find-turn.ts';

/** Texts before the question that a case has. */
const maxTexts = 20;
const maxInput = 100_000;
const maxReference = 20_000;
const maxName = 80;

/** Handler of `eval.cases`: test cases made of what was asked and answered. */
export function createCasesOf(deps: {
  readonly sessions: Pick<SessionsApi, 'pastTurn' | 'rated'>;
  readonly findTurn: FindTurn;
}): HandlersOf<'eval.cases'> {
  return {
    'eval.cases': async ({ ref, rating, agentId, limit }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'eval.cases is for administrators, not for agents');
      const found: PastTurn[] = [];
      if (ref !== undefined) {
        const { id, conversationRef } = await deps.findTurn(ref, call);
        found.push(await deps.sessions.pastTurn({ conversationRef, turnId: id, texts: maxTexts }, call));
      } else {
        for (const answer of await deps.sessions.rated({ rating, agentId, limit }, call)) {
          // Deleted meanwhile.
          const turn = await deps.sessions.pastTurn({ ...answer, texts: maxTexts }, call).catch((error: unknown) => {
            if (error instanceof AppError && error.code === 'not_found') return undefined;
            throw error;
          });
          if (turn !== undefined) found.push(turn);
        }
      }
      const cases = namedOnce(found.filter(({ question }) => question.text !== '').map(toCase));
      const { stringify } = await import('./yaml.ts');
      return { cases, yaml: stringify({ cases }) };
    },
  };
}

function toCase({ question, before, answer, tools, feedback }: PastTurn): EvalCase {
  const reference = feedback?.rating === 'bad' || answer === '' ? undefined : cut(answer, maxReference);
  const history = before.map(({ role, content }) => ({ role, content: cut(content, maxInput) }));
  return {
    name: question.text.replaceAll(/\s+/g, ' ').trim().slice(0, maxName).toWellFormed() || 'case',
    input: cut(question.text, maxInput),
    ...(history.length > 0 && { history }),
    ...(reference !== undefined && { reference }),
    checks: {
      ...(tools.length > 0 && reference !== undefined && { toolCalled: [...new Set(tools)].slice(0, 20) }),
      judge: { rubric: rubricOf(feedback) },
    },
  };
}

function rubricOf(feedback: PastTurn['feedback']): string {
  if (feedback?.rating !== 'bad') return 'The answer says the same as the reference; other words and more detail are fine.';
  return feedback.note === undefined
    ? 'The answer is correct, complete and useful.'
    : `The answer does not have this fault, which a person found in an earlier answer: ${feedback.note}`;
}

/** Makes names unique, because reports identify cases by them. */
function namedOnce(cases: readonly EvalCase[]): EvalCase[] {
  const seen = new Map<string, number>();
  return cases.map((one) => {
    const times = (seen.get(one.name) ?? 0) + 1;
    seen.set(one.name, times);
    return times === 1 ? one : { ...one, name: `${one.name} (${times})` };
  });
}

const cut = (text: string, length: number) => text.slice(0, length).toWellFormed();
