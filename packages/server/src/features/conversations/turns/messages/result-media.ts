import type { ModelInfo, ModelMessage, ModelPart } from '../../../../llm/model.ts';

type Media = Exclude<ModelPart, { type: 'text' }>;

const kindOf = (part: Media) => (part.type === 'image' ? 'image' : 'file');

/** Collects the images and files of tool results, which go to the model in a message of their own behind the last of the results. */
export class ResultMedia {
  readonly #isUsable: (part: ModelPart) => boolean;
  #taken: Media[] = [];

  constructor(isUsable: (part: ModelPart) => boolean) {
    this.#isUsable = isUsable;
  }

  /** The text of one result, in which each image or file has a note in its place. */
  take(parts: readonly ModelPart[]): string {
    return parts
      .map((part) => {
        if (part.type === 'text') return part.text;
        if (!this.#isUsable(part)) return leftOut(part, 'models do not take it in this form');
        this.#taken.push(part);
        return `[${kindOf(part)} ${this.#taken.length}: follows the results]`;
      })
      .join('\n');
  }

  /** The message that shows what was taken since the last one. */
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

/** Replaces by a note what the model cannot see of tool results. What a user shows it is another matter: that request is refused. */
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
