/**
 * A queue from which any waiting item can leave in O(1): `push` returns the function that takes it out again.
 * (A Set would do the same, but its iterator walks over the tombstones of what was deleted at the front.)
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
  let first: Node<T> | undefined;
  let last: Node<T> | undefined;
  let size = 0;

  function unlink(node: Node<T>): void {
    if (!node.linked) return;
    node.linked = false;
    size -= 1;
    if (node.previous === undefined) first = node.next;
    else node.previous.next = node.next;
    if (node.next === undefined) last = node.previous;
    else node.next.previous = node.previous;
  }

  return {
    get size() {
      return size;
    },
    push(value) {
      const node: Node<T> = { value, previous: last, next: undefined, linked: true };
      if (last === undefined) first = node;
      else last.next = node;
      last = node;
      size += 1;
      return () => unlink(node);
    },
    shift() {
      const node = first;
      if (node === undefined) return undefined;
      unlink(node);
      return node.value;
    },
  };
}
