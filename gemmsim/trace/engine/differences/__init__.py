"""Follows how every value of one block, the leader, differs in the other blocks of the grid, while the leader runs.

Blocks differ only in what they read from SR_CTAID. So each word of a lane's state in another block is the leader's word
plus a difference that depends on the block alone: a vector with one element for each block. Few such vectors occur,
because lanes and loop iterations share them. A variant of the compiled executor keeps beside each word of the state the
number of its vector (its shadow; 0 means that no block differs), and computes the vectors of results from those of
operands. Where the leader branches, skips an access or forms the shape of an access, it notes which vectors must be
zero for another block to do the same. The blocks for which all of these are zero form the leader's class: they execute
the same instructions with the same access shapes, and the address of each access is the leader's plus a known number of
bytes. Nothing is guessed: a value whose difference is not known stops the leader (`words.UNRELATED`).
"""
