import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import { isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import { ModelError } from '../../../../llm/model.ts';
import type { ProviderState } from '../../../../llm/models.ts';
import type { ProviderStates } from '../../../../llm/provider-states.ts';
import type { ChargedOperation, ModelWork } from '../../../access/budgets/api.ts';
import type { Provider, ProviderEntry } from './entry.ts';

/** The caller, and the agent that pays. */
export interface AskedFor {
  readonly agentId: string;
  readonly conversationRef?: string | undefined;
  readonly call: CallContext;
  readonly signal: AbortSignal;
}

export interface Answer<T> {
  readonly value: T;
  /** 1e-9 dollar; null when the price is not known. */
  readonly costNano: number | null;
  readonly tokens?: { readonly input: number; readonly output: number };
}

export interface Question<Entry extends ProviderEntry, T> {
  readonly operation: ChargedOperation;
  /** Key of the configuration that lists the providers. */
  readonly section: string;
  /** Key of an entry that states its price. */
  readonly priceKey: string;
  readonly providers: readonly Provider<Entry>[];
  readonly model?: string | undefined;
  /** The most that it can cost there, 1e-9 dollar; null when the price is not known. */
  readonly mostNano: (provider: Provider<Entry>) => number | null;
  readonly ask: (provider: Provider<Entry>) => Promise<Answer<T>>;
  /** Called before each provider that is asked. */
  readonly asking?: (provider: Provider<Entry>) => void;
  /** Another provider would refuse it too, or should not be tried. */
  readonly isFinal?: (error: ModelError) => boolean;
}

export interface Answered<Entry extends ProviderEntry, T> {
  readonly value: T;
  readonly provider: Provider<Entry>;
  readonly model: string;
  readonly costNano: number | null;
}

export interface ChainDeps {
  readonly states: ProviderStates;
  readonly charge: ModelWork['charge'];
  /** Called when a provider failed and another one is asked. */
  readonly onFallback: (from: string, to: string, error: ModelError) => void;
}

/** Asks the providers of a list in order: the first that is not paused, then the next ones while it fails. Each request is charged. */
export class ProviderChain {
  readonly #deps: ChainDeps;

  constructor(deps: ChainDeps) {
    this.#deps = deps;
  }

  /** Returns what calls have shown about these providers, by name. */
  statesOf(providers: readonly Provider[]): Record<string, ProviderState['state']> {
    return Object.fromEntries(
      providers.map(({ name, keys, missing }) => [name, missing === undefined ? this.#deps.states.stateOf(name, keys).state : 'refused']),
    );
  }

  async ask<Entry extends ProviderEntry, T>(question: Question<Entry, T>, asked: AskedFor): Promise<Answered<Entry, T>> {
    const { providers, section } = question;
    if (providers.length === 0) throw new AppError('precondition_failed', `${notConfigured[question.operation]} is not configured: set ${section}`);
    const usable = providers.filter(({ missing }) => missing === undefined);
    if (usable.length === 0)
      throw new AppError('precondition_failed', `${notConfigured[question.operation]} is not configured: ${providers[0]?.missing ?? section}`);
    const awake = usable.filter((provider) => this.#pauseOf(provider, question, asked) === undefined);
    if (awake.length === 0) throw this.#paused(usable, question, asked);
    let last: ModelError | undefined;
    let from: Provider | undefined;
    for (const provider of awake) {
      if (last !== undefined && from !== undefined) this.#deps.onFallback(from.name, provider.name, last);
      try {
        return await this.#askOne(provider, question, asked);
      } catch (error) {
        if (!(error instanceof ModelError) || error.kind === 'aborted' || asked.signal.aborted || question.isFinal?.(error) === true)
          throw toAppError(error, asked.call);
        last = error;
        from = provider;
      }
    }
    throw toAppError(last, asked.call);
  }

  async #askOne<Entry extends ProviderEntry, T>(
    provider: Provider<Entry>,
    question: Question<Entry, T>,
    asked: AskedFor,
  ): Promise<Answered<Entry, T>> {
    const { states, charge } = this.#deps;
    question.asking?.(provider);
    const model = question.model ?? provider.model;
    const about = { provider: provider.name, modelId: model };
    const calling = { model: about, keys: provider.keys, agentId: asked.agentId, caller: asked.call.identity.tokenId, isExplicit: false };
    const [key] = provider.keys;
    try {
      const answer = await charge(
        {
          agentId: asked.agentId,
          principalId: ownerOf(asked.call),
          ...(asked.conversationRef !== undefined && { conversationRef: asked.conversationRef }),
          signal: asked.signal,
          part: asked.call.agentCaller?.turn,
          operation: question.operation,
          ...about,
          mostNano: question.mostNano(provider),
          priceKey: `${question.section}[].${question.priceKey}`,
        },
        () => question.ask(provider),
      );
      states.succeeded(about, key);
      return { value: answer.value, provider, model, costNano: answer.costNano };
    } catch (error) {
      if (error instanceof ModelError) states.failed(calling, key, error);
      throw error;
    }
  }

  #pauseOf(provider: Provider, { model }: { readonly model?: string | undefined }, { call }: AskedFor) {
    return this.#deps.states.pauseOf({ provider: provider.name, modelId: model ?? provider.model }, provider.keys, call.identity.tokenId, false);
  }

  #paused(
    providers: readonly Provider[],
    question: { readonly operation: ChargedOperation; readonly model?: string | undefined },
    asked: AskedFor,
  ): AppError {
    const left = providers.map((provider) => this.#pauseOf(provider, question, asked)?.leftMs ?? 0);
    const retryAfterMs = Math.max(1, Math.min(...left));
    return new AppError(
      'unavailable',
      `${notConfigured[question.operation]}: every provider is paused after failures (${providers.map(({ name }) => name).join(', ')})`,
      {
        retryAfterMs,
      },
    );
  }
}

const notConfigured: Readonly<Record<ChargedOperation, string>> = {
  transcription: 'Speech-to-text',
  speech: 'Text-to-speech',
  imageGeneration: 'Image generation',
  video: 'Video description',
};

/**
 * Returns the failure as it leaves the feature; messages of providers have no secrets by now. What a provider says about a request is for its caller,
 * what it says about its own state or the account for owners only.
 */
export function toAppError(error: unknown, call: CallContext): unknown {
  if (!(error instanceof ModelError)) return error;
  const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
  if (error.kind === 'aborted') return new AppError('cancelled', 'The call was aborted', { cause: error });
  if (error.kind === 'timeout') return new AppError('timeout', error.message, { cause: error });
  if (error.kind === 'bad_request' || error.kind === 'context_length')
    return new AppError('invalid_params', `The provider refused the request: ${error.message}`, { reason: 'upstream_rejected', cause: error });
  const message = isAdmin(call) ? error.message : `The provider failed (${error.kind}): the trace says why, to administrators`;
  return new AppError('unavailable', message, { ...retry, cause: error });
}
