import type { SpeechFormat, TtsAutoMode } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { AutoCheck } from './speech/directives.ts';

export type { AutoCheck } from './speech/directives.ts';

/** The agent that pays, for which call, and until when. */
export interface ForAgent {
  readonly agentId: string;
  readonly conversationRef?: string | undefined;
  readonly call: CallContext;
  readonly signal: AbortSignal;
}

export interface TranscriptOf {
  readonly text: string;
  readonly language?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly provider: string;
  readonly model: string;
}

export interface SpeechOf {
  readonly bytes: Buffer;
  readonly mimeType: string;
  readonly extension: string;
  readonly format: SpeechFormat;
  readonly provider: string;
  readonly model: string;
}

export interface ImageOf {
  readonly bytes: Buffer;
  readonly mimeType: string;
  readonly extension: string;
  readonly provider: string;
  readonly model: string;
}

/** Speech and images for routes and channels: within the budgets and hourly caps (`rate_limited` beyond them), charged, and asked in the order of the configuration. */
export interface MultimodalApi {
  isConfigured(what: 'transcription' | 'speech' | 'imageGeneration'): boolean;
  /** Fails for an agent that is suspended or gone, as every request for it does. */
  assertUsable(asked: Pick<ForAgent, 'agentId' | 'call'>): void;
  /** Fails with `precondition_failed` when nothing is configured, `invalid_params` when the bytes are not speech. */
  transcribe(
    recording: { readonly bytes: Uint8Array; readonly language?: string | undefined; readonly param: string },
    asked: ForAgent,
  ): Promise<TranscriptOf>;
  speak(
    text: {
      readonly text: string;
      readonly voice?: string | undefined;
      readonly format?: SpeechFormat | undefined;
      readonly speed?: number | undefined;
      readonly forVoiceNote?: boolean;
    },
    asked: ForAgent,
  ): Promise<SpeechOf>;
  generateImage(
    wish: {
      readonly prompt: string;
      readonly size?: string | undefined;
      readonly model?: string | undefined;
      readonly reference?: Uint8Array | undefined;
    },
    asked: ForAgent,
  ): Promise<ImageOf>;
  /** Decides by `tts.autoMode` whether an answer is spoken. */
  autoCheck(answer: { readonly text: string; readonly hasInboundAudio: boolean; readonly hasMedia: boolean }): AutoCheck;
  readonly autoMode: TtsAutoMode;
  /** Largest recording (`media.transcription.maxBytes`). */
  readonly maxRecordingBytes: number;
  /** Whether voice notes are read to agents as text. */
  readonly transcribesNotes: boolean;
}
