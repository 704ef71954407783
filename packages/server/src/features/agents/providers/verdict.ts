import type { ResultInput } from '@gatehouse/contract';
import type { ModelError } from '../../../llm/model.ts';
import type { Attempt } from '../../../llm/models.ts';

type Tested = ResultInput<'providers.test'>;
type Verdict = Pick<Tested, 'verdict' | 'message' | 'nextStep'>;

const slowMs = 10_000;
/** Providers name a missing model by status 404, or by a 400 with a sentence. It decides nothing but the words of a verdict. */
const unknownModel = /model.*(?:not (?:exist|found|support|a valid)|invalid|unknown|does ?n.t exist)|(?:unknown|invalid|no such) model|^model:/is;

/** Returns what the outcome of a trial means, and what to do about it. */
export function verdictOf({ error, latencyMs }: Attempt, model: string, isListed: boolean): Verdict {
  if (error !== undefined) return failureOf(error, model, isListed);
  if (latencyMs < slowMs) return { verdict: 'ok', message: `The provider answered in ${Math.round(latencyMs)} ms` };
  return {
    verdict: 'slow',
    message: `The provider works, but took ${(latencyMs / 1000).toFixed(1)} s for the shortest answer`,
    nextStep: 'Test again later, choose a smaller model, or raise modelTimeoutMs of the agents that use it',
  };
}

function failureOf(error: ModelError, model: string, isListed: boolean): Verdict {
  const about = error.possibly ?? error.kind;
  switch (about) {
    case 'auth':
      return {
        verdict: 'key_refused',
        message: 'The provider refused the key',
        nextStep: 'Check that the key is complete, not revoked, and one of this provider; some keys are limited to some models',
      };
    case 'billing':
      return { verdict: 'no_credit', message: 'The account has no credit left', nextStep: 'Add credit at the provider, or raise its spending limit' };
    case 'rate_limit':
      return { verdict: 'rate_limited', message: 'The provider accepts no more calls for now', nextStep: waitStep(error.retryAfterMs) };
    case 'network':
      return { verdict: 'unreachable', message: 'The provider cannot be reached', nextStep: 'Check the base URL, and that the server runs' };
    case 'timeout':
      return { verdict: 'unreachable', message: 'The provider did not answer in time', nextStep: 'Check the base URL, or test again later' };
    default:
      return refusalOf(error, model, isListed);
  }
}

function refusalOf({ kind, status, message }: ModelError, model: string, isListed: boolean): Verdict {
  if (kind === 'bad_request' && (unknownModel.test(message) || (status === 404 && isListed)))
    return { verdict: 'model_unknown', message: `The provider has no model "${model}"`, nextStep: 'Name a model that the provider has' };
  if (status === 404)
    return { verdict: 'failed', message: 'There is no model server at this address', nextStep: 'Check the base URL: most end in /v1' };
  if (kind === 'bad_response')
    return { verdict: 'failed', message: 'The answer is not one of a model server', nextStep: 'Check the base URL and the type of the provider' };
  if (kind === 'server' || kind === 'overloaded')
    return { verdict: 'failed', message: 'The provider has a fault or is overloaded', nextStep: 'Test again later' };
  return { verdict: 'failed', message: 'The provider refused the call', nextStep: 'See the sentence of the provider' };
}

function waitStep(retryAfterMs: number | undefined): string {
  return retryAfterMs === undefined ? 'Test again later, or raise the limit at the provider' : `Test again in ${Math.ceil(retryAfterMs / 1000)} s`;
}
