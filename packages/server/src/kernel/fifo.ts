/**
 * A queue from which any waiting item can be removed in O(1): `push` returns the function that removes it.
 * (A Set would do the same, but its iterator walks over the tombstones of items deleted at the front.)
 */
export interface Fifo<T> {
  readonly size: number;
  push(value: T): () => void;
  shift(): T | undefined;
}

interface Node<T> {
  readonly value: T;
  previous: Node<T> | undefined;
  next: Node<T> | undefined;
  linked: boolean;
}

export function createFifo<T>(): Fifo<T> {
  return new LinkedList<T>();
}

/** A class because every turn creates some: the engine builds an object literal with a getter on its slow path. */
class LinkedList<T> implements Fifo<T> {
  #first: Node<T> | undefined;
  #last: Node<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(value: T): () => void {
    const node: Node<T> = { value, previous: this.#last, next: undefined, linked: true };
    if (this.#last === undefined) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
    this.#size += 1;
    return () => this.#unlink(node);
  }

  shift(): T | undefined {
    const node = this.#first;
    if (node === undefined) return undefined;
    this.#unlink(node);
    return node.value;
  }

  #unlink(node: Node<T>): void {
    if (!node.linked) return;
    node.linked = false;
    this.#size -= 1;
    if (node.previous === undefined) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next === undefined) this.#last = node.previous;
    else node.next.previous = node.previous;
    // A dead node that reached the old generation would keep its neighbours alive.
    node.previous = undefined;
    node.next = undefined;
  }
}
