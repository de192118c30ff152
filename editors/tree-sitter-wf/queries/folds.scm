[(form) (problem) (region) (block_comment)] @fold
