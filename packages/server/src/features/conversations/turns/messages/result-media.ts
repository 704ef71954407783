import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';

type Media = Exclude<ModelPart, { type: 'text' }>;

const kindOf = (part: Media) => (part.type === 'image' ? 'image' : 'file');

/** Collects images and files of tool results, which are sent to the model in a separate message after the last result. */
export class ResultMedia {
  readonly #isUsable: (part: ModelPart) => boolean;
  #taken: Media[] = [];

  constructor(isUsable: (part: ModelPart) => boolean) {
    this.#isUsable = isUsable;
  }

  /** Returns the text of one result, with a note instead of each image or file. */
  take(parts: readonly ModelPart[]): string {
    return parts
      .map((part) => {
        if (part.type === 'text') return part.text;
        if (!this.#isUsable(part)) return leftOut(part, 'models do not support this form');
        this.#taken.push(part);
        return `[${kindOf(part)} ${this.#taken.length}: follows the results]`;
      })
      .join('\n');
  }

  /** Returns the message with the media collected since the last call. */
  release(): ModelMessage[] {
    if (this.#taken.length === 0) return [];
    const parts = this.#taken.flatMap((part, index): ModelPart[] => [
      { type: 'text', text: `[${kindOf(part)} ${index + 1} of the tool results above]` },
      part,
    ]);
    this.#taken = [];
    return [{ role: 'user', content: textsOf(parts), parts, ofResults: true }];
  }
}

/** Replaces unsupported media in tool results by a note. Unsupported media from users reject the request instead. */
export function showResults(messages: readonly ModelMessage[], model: ModelInfo): readonly ModelMessage[] {
  const sees = (part: ModelPart) => part.type === 'text' || model.input.includes(part.type === 'image' ? 'image' : 'pdf');
  return messages.map((message) => {
    if (message.role !== 'user' || message.ofResults !== true || message.parts?.every(sees) !== false) return message;
    const why = `the model ${model.provider}/${model.modelId} cannot see it`;
    const parts = message.parts.map((part): ModelPart => (part.type === 'text' || sees(part) ? part : { type: 'text', text: leftOut(part, why) }));
    const { parts: _unseen, ...rest } = message;
    const content = textsOf(parts);
    return parts.some((part) => part.type !== 'text') ? { ...rest, content, parts } : { ...rest, content };
  });
}

const leftOut = (part: Media, why: string) => `[${kindOf(part)} left out: ${why}]`;

const textsOf = (parts: readonly ModelPart[]) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
