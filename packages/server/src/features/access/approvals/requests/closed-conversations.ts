/** Conversations that are being cleared; the same one may be cleared by several at a time. */
export class ClosedConversations {
  readonly #counts = new Map<string, number>();

  has(conversationRef: string): boolean {
    return this.#counts.has(conversationRef);
  }

  /** Closes a conversation until the result is disposed. */
  close(conversationRef: string): Disposable {
    this.#counts.set(conversationRef, (this.#counts.get(conversationRef) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        const others = (this.#counts.get(conversationRef) ?? 1) - 1;
        if (others === 0) this.#counts.delete(conversationRef);
        else this.#counts.set(conversationRef, others);
      },
    };
  }
}
