/** The window we live in: TensorBoard's, where our iframe is of its origin; else our own (opened alone). */

function sameOriginParent(): Window | null {
  try {
    // Reading the document throws where the parent is of another origin.
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null;
  }
}

/** TensorBoard's window when embedded, our own when opened alone. */
export function hostWindow(): Window {
  return sameOriginParent() ?? window;
}

export function isEmbedded(): boolean {
  return sameOriginParent() !== null;
}
