import type { ProviderType } from './config.ts';
import type { ModelError, ModelInfo, ModelRequest, ModelResult, ModelSink, ModelUsage } from './model.ts';
import type { Asked, Unsupported } from './unsupported.ts';

export interface ProviderInfo {
  readonly id: string;
  readonly type: ProviderType | 'offline';
  readonly baseUrl: string;
  readonly source: 'config' | 'environment' | 'local_server' | 'built_in';
  readonly apiKeyConfigured: boolean;
}

/** What calls to a provider have shown: it answers, refused its key, asked to wait, or does not answer as it should. */
export interface ProviderState {
  readonly provider: string;
  readonly state: 'ok' | 'refused' | 'cooling' | 'unreachable';
  readonly sinceMs: number;
  /** Until then it is not called, except on an owner's explicit attempt. */
  readonly untilMs?: number;
  /** The provider's own sentence, secrets redacted: for owners only. */
  readonly cause?: string;
}

/** One attempt at a model, whether it worked or not; each is booked. */
export interface Attempt {
  readonly model: ModelInfo;
  readonly usage: ModelUsage;
  readonly latencyMs: number;
  readonly startedAtMs: number;
  readonly outcome: 'ok' | 'error';
  /** Of a failed one. */
  readonly error?: ModelError;
  readonly responseId?: string;
}

/** The catalog and the wires behind it. */
export interface Models extends AsyncDisposable {
  providers(): readonly ProviderInfo[];
  /** Configured models in catalog order; `offline` only when nothing else is there. */
  list(): readonly ModelInfo[];
  /** `provider/modelId`, or a bare id: first in `preferredProvider`, then in catalog order. */
  resolve(name: string, preferredProvider?: string): ModelInfo | undefined;
  /** The model of agents that name none. */
  defaultModel(): ModelInfo;
  /** What of a request the vendor of this model would refuse or pass over without a word; undefined when all of it is honoured. */
  unsupported(model: ModelInfo, asked: Asked): Unsupported | undefined;
  /**
   * Calls the first of `models` that is not cooling down, then the next ones while the error allows it and no text
   * was handed out. Each attempt goes to `onAttempt`. Fails with the last ModelError.
   */
  generate(
    call: {
      readonly models: readonly ModelInfo[];
      readonly agentId: string;
      /** Id of the token, or of what acts without one; the agent itself when absent. */
      readonly caller?: string;
      readonly request: Omit<ModelRequest, 'model' | 'maxAnswerBytes'>;
      readonly onAttempt: (attempt: Attempt) => void;
      /** Asked after an attempt that failed and cost something; without leave the call fails with what it has. */
      readonly mayGoOn?: () => boolean | Promise<boolean>;
      /** An owner asked for it and waits for the answer: refused credentials are tried once more. */
      readonly isExplicit?: boolean;
    },
    sink?: ModelSink,
  ): Promise<{ readonly result: ModelResult; readonly model: ModelInfo }>;
  /** One entry per provider, in catalog order. */
  states(): readonly ProviderState[];
  /** Forgets what failed calls said about a provider ("try now"). */
  clearState(provider: string): void;
  /** Has the next answer of a model (`provider/modelId`) reported to `onRecovered`, also when this process never saw it fail. */
  watch(model: string): void;
  /** Called with `provider/modelId` when a model that had failed or is watched answers, or its provider's state is cleared; returns what ends it. */
  onRecovered(listener: (model: string) => void): () => void;
}
