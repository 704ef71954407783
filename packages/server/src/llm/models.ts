import type { AnswerEffort, ProviderType } from '@gatehouse/contract';
import type { ModelError, ModelInfo, ModelRequest, ModelResult, ModelSink, ModelUsage } from './model.ts';
import type { Asked, Unsupported } from './unsupported.ts';

export interface ProviderInfo {
  readonly id: string;
  readonly type: ProviderType | 'offline';
  readonly baseUrl: string;
  readonly source: 'config' | 'environment' | 'local_server' | 'built_in';
  readonly apiKeyConfigured: boolean;
}

/** What calls to a provider have shown: it answers, refused its key, asked to wait, or does not answer correctly. */
export interface ProviderState {
  readonly provider: string;
  readonly state: 'ok' | 'refused' | 'cooling' | 'unreachable';
  readonly sinceMs: number;
  /** Until then it is called only by an owner's explicit attempt. */
  readonly untilMs?: number;
  /** The provider's own message, secrets redacted: for owners only. */
  readonly cause?: string;
}

/** One attempt at a model, successful or not; each is charged. */
export interface Attempt {
  readonly model: ModelInfo;
  readonly usage: ModelUsage;
  readonly latencyMs: number;
  readonly startedAtMs: number;
  readonly outcome: 'ok' | 'error';
  /** Set for a failed one. */
  readonly error?: ModelError;
  readonly responseId?: string;
}

/** The catalog and its clients. */
export interface Models extends AsyncDisposable {
  providers(): readonly ProviderInfo[];
  /** Configured models in catalog order; `offline` only when there are no others. */
  list(): readonly ModelInfo[];
  /** `provider/modelId`, or a bare id: first in `preferredProvider`, then in catalog order. */
  resolve(name: string, preferredProvider?: string): ModelInfo | undefined;
  /** The model of agents that name none. */
  defaultModel(): ModelInfo;
  /** Returns which part of a request the model's vendor would refuse or silently ignore; undefined when all of it is supported. */
  unsupported(model: ModelInfo, asked: Asked): Unsupported | undefined;
  /** Returns the values of `effort` that a caller may choose for the model. */
  effortsOf(model: ModelInfo): readonly AnswerEffort[];
  /**
   * Calls the first of `models` that is not cooling down, then the next ones while the error allows it and no text
   * was sent. Each attempt is reported to `onAttempt`. Fails with the last ModelError.
   */
  generate(
    call: {
      readonly models: readonly ModelInfo[];
      readonly agentId: string;
      /** Id of the token, or of an actor without one; the agent itself when absent. */
      readonly caller?: string;
      readonly request: Omit<ModelRequest, 'model' | 'maxAnswerBytes'>;
      readonly onAttempt: (attempt: Attempt) => void;
      /** Asked after a failed attempt that cost something; when false, the call fails with what it has. */
      readonly mayContinue?: () => boolean | Promise<boolean>;
      /** An owner asked for it and waits for the answer: refused credentials are tried once more. */
      readonly isExplicit?: boolean;
    },
    sink?: ModelSink,
  ): Promise<{ readonly result: ModelResult; readonly model: ModelInfo }>;
  /** One entry per provider, in catalog order. */
  states(): readonly ProviderState[];
  /** Clears what failed calls revealed about a provider ("try now"). */
  clearState(provider: string): void;
  /** Reports the next answer of a model (`provider/modelId`) to `onRecovered`, even when this process never saw it fail. */
  watch(model: string): void;
  /** Called with `provider/modelId` when a failed or watched model answers, or its provider's state is cleared; returns a function to unsubscribe. */
  onRecovered(listener: (model: string) => void): () => void;
}
