graph mlp
dim batch 64
dim hidden 1024
dim ffn 4096
input x [batch hidden] bf16
weight w1 [hidden ffn] bf16
weight w2 [ffn hidden] bf16
block layers.0
op up = matmul(x, w1) [batch ffn] bf16
op down = matmul(up, w2) [batch hidden] bf16
out down
